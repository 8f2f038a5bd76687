//! Waiting for a queue's marker while the worker has nothing to do.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::line::Line;
use crate::store::Waiter;

/// How long one wait lasts before the queue is looked at without a marker.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The pause after a wait that failed.
const PAUSE: Duration = Duration::from_millis(250);

/// How long an interrupted wait may take to end.
const END: Duration = Duration::from_secs(1);

/// Waits for one queue's marker whenever the fetcher sleeps.
pub(super) async fn wait(line: Arc<Line>, waiter: Arc<Waiter>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = line.parked() => {}
        }
        let mut waiting = std::pin::pin!(waiter.wait(LONGEST_WAIT));
        let woken = tokio::select! {
            woken = &mut waiting => woken,
            () = stop.cancelled() => {
                // A blocking call that is merely dropped would take the next marker from those who go on working.
                let interrupted = async {
                    waiter.interrupt().await;
                    waiting.await
                };
                if let Ok(Ok(true)) = tokio::time::timeout(END, interrupted).await {
                    hand_on(&line).await;
                }
                return;
            }
        };
        match woken {
            Ok(true) if line.is_parked() => {
                // At once, and not when the fetcher gets to it: else the next wait would begin while it fetches, and
                // take a marker that others could use.
                line.unpark();
                line.heat();
            }
            // The fetcher has found something meanwhile, or has no room: somebody else may want to know.
            Ok(true) => hand_on(&line).await,
            // A marker that got lost is set again by a sweep, if there is work: that asks for less than a claim does.
            Ok(false) => line.expect(Some(Duration::ZERO)),
            Err(error) => {
                tracing::debug!(%error, queue = %line.store.name(), "waiting for work failed");
                stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
                line.heat();
            }
        }
    }
}

async fn hand_on(line: &Line) {
    if let Err(error) = line.store.wake_another().await {
        tracing::debug!(%error, queue = %line.store.name(), "the marker can't be handed on");
    }
}
