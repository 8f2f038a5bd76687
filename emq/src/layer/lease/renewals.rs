//! The loop that renews the leases in hand.

use std::sync::{Arc, Weak};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::held::{Entry, Held};
use crate::{
    job::QueueName,
    store::{CallError, Connection, Extend, Extended, MAX_BATCH, Store},
};

/// What asks the server for more time.
pub(super) trait Renew: Clone + Send + 'static {
    /// One answer per lease, in order.
    fn renew(
        &self,
        queue: QueueName,
        leases: Vec<Extend>,
    ) -> impl Future<Output = Result<Vec<Extended>, CallError>> + Send + 'static;
}

impl Renew for Arc<Connection> {
    fn renew(
        &self,
        queue: QueueName,
        leases: Vec<Extend>,
    ) -> impl Future<Output = Result<Vec<Extended>, CallError>> + Send + 'static {
        let store = Store::new(Arc::clone(self), queue);
        async move { store.extend(&leases).await }
    }
}

/// Renews what is held until it is told to stop.
pub(super) async fn renewals(held: Arc<Held>, server: impl Renew, stop: CancellationToken) {
    loop {
        let beat = held.beat(Instant::now());
        for (queue, entries) in beat.due {
            for batch in entries.chunks(MAX_BATCH) {
                tokio::spawn(renew(server.clone(), queue.clone(), batch.to_vec(), Arc::downgrade(&held)));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = held.hurry.notified() => {}
            () = sleep_or_forever(beat.next) => {}
        }
    }
}

async fn sleep_or_forever(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Renews some leases of one queue, in a task of its own: a call that hangs must not hold up those of other queues.
async fn renew(server: impl Renew, queue: QueueName, entries: Vec<(u64, Entry)>, held: Weak<Held>) {
    let sent = Instant::now();
    let leases = entries.iter().map(|(_, entry)| Extend { lease: entry.state.lease(), term: entry.term }).collect();
    let extended = server.renew(queue.clone(), leases).await;
    let Some(held) = held.upgrade() else { return };
    match extended {
        Ok(extended) => held.answered(sent, &entries, &extended),
        Err(error) => {
            tracing::warn!(%error, %queue, jobs = entries.len(), "leases can't be renewed yet");
            held.failed(&entries);
        }
    }
}
