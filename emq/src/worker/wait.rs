//! Waiting for the markers of queues while the worker has nothing to do.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::line::Line;
use crate::store::Waiter;

/// How long one wait lasts before the queues are looked at without a marker.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The pause after a wait that failed.
const PAUSE: Duration = Duration::from_millis(250);

/// How long an interrupted wait may take to end.
const END: Duration = Duration::from_secs(1);

/// The lines for which one connection waits: on a Cluster one, else all of the worker.
pub(super) struct Watch {
    pub(super) lines: Vec<Arc<Line>>,
    /// Told when the fetcher goes to sleep and leaves one of them to be waited for.
    pub(super) parking: Arc<Notify>,
    pub(super) waiter: Arc<Waiter>,
}

impl Watch {
    /// Waits for the markers whenever the fetcher sleeps.
    pub(super) async fn run(self, stop: CancellationToken) {
        // Of several markers that are set the server takes the first one named: each is the first in turn.
        let mut first = 0;
        loop {
            let waited = tokio::select! {
                () = stop.cancelled() => return,
                waited = self.parked(first) => waited,
            };
            let mut waiting = std::pin::pin!(self.waiter.wait(&waited, LONGEST_WAIT));
            let (woken, is_over) = tokio::select! {
                woken = &mut waiting => (woken, true),
                () = self.parked_besides(&waited) => {
                    self.waiter.interrupt().await;
                    (waiting.await, false)
                }
                () = stop.cancelled() => {
                    // A blocking call that is merely dropped would take the next marker from those who go on working.
                    let interrupted = async {
                        self.waiter.interrupt().await;
                        waiting.await
                    };
                    if let Ok(Ok(Some(at))) = timeout(END, interrupted).await {
                        hand_on(&self.lines[at]).await;
                    }
                    return;
                }
            };
            match woken {
                Ok(Some(at)) => {
                    first = at + 1;
                    self.wake(at, &waited).await;
                }
                // A marker that got lost is set again by a sweep, if there is work: that asks for less than a claim does.
                Ok(None) if is_over => waited.iter().for_each(|at| self.lines[*at].expect(Some(Duration::ZERO))),
                Ok(None) => {}
                Err(error) => {
                    let queue = self.lines[waited[0]].store.name();
                    tracing::debug!(%error, %queue, "waiting for work failed");
                    stop.run_until_cancelled(sleep(PAUSE)).await;
                    waited.iter().for_each(|at| self.lines[*at].heat());
                }
            }
        }
    }

    async fn wake(&self, at: usize, waited: &[usize]) {
        let line = &self.lines[at];
        if !line.is_parked() {
            // The fetcher has found something meanwhile, or has no room: somebody else may want to know.
            hand_on(line).await;
            return;
        }
        // At once, and not when the fetcher gets to it: else the next wait would begin while it fetches, and take a
        // marker that others could use.
        waited.iter().for_each(|at| self.lines[*at].unpark());
        line.heat();
    }

    /// Waits until the fetcher sleeps: the lines that it has left to be waited for, from `first` on.
    async fn parked(&self, first: usize) -> Vec<usize> {
        loop {
            let count = self.lines.len();
            let in_turn = (0..count).map(|n| (first + n) % count);
            let parked: Vec<usize> = in_turn.filter(|at| self.lines[*at].is_parked()).collect();
            if !parked.is_empty() {
                return parked;
            }
            // No `yield_now` after it, to see all that it leaves: on a thread that a job then blocks, that would never end.
            self.parking.notified().await;
        }
    }

    /// Waits until the fetcher has left one to be waited for that isn't among these.
    async fn parked_besides(&self, waited: &[usize]) {
        loop {
            self.parking.notified().await;
            let mut others = (0..self.lines.len()).filter(|at| !waited.contains(at));
            if others.any(|at| self.lines[at].is_parked()) {
                return;
            }
        }
    }
}

async fn hand_on(line: &Line) {
    if let Err(error) = line.store.wake_another().await {
        tracing::debug!(%error, queue = %line.store.name(), "the marker can't be handed on");
    }
}
