//! The loop that renews the leases in hand.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::held::{Entry, Held};
use crate::{
    job::{JobError, QueueName},
    layer::{Delivery, Elapsed, Outcome, retry::outcome_of_failure, settle::write},
    store::{CallError, Connection, Extend, Extended, MAX_BATCH, Settled, Store},
};

/// The pause between two tries to fail a job.
const PAUSE: Duration = Duration::from_millis(200);

/// What asks the server for more time.
pub(super) trait Renew: Clone + Send + 'static {
    /// One answer per lease, in order.
    fn renew(
        &self,
        queue: QueueName,
        leases: Vec<Extend>,
    ) -> impl Future<Output = Result<Vec<Extended>, CallError>> + Send + 'static;

    /// Fails the job of a run that can't be dropped.
    fn fail(
        &self,
        delivery: Delivery,
        outcome: Outcome,
    ) -> impl Future<Output = Result<Settled, CallError>> + Send + 'static;
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

    fn fail(
        &self,
        delivery: Delivery,
        outcome: Outcome,
    ) -> impl Future<Output = Result<Settled, CallError>> + Send + 'static {
        let store = Store::new(Arc::clone(self), delivery.queue().clone());
        async move { write(&store, &delivery, &outcome, |done| store.complete(done)).await }
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
        for entry in beat.stuck {
            tokio::spawn(write_off(server.clone(), entry));
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = held.hurry.notified() => {}
            () = sleep_until(beat.next) => {}
        }
    }
}

/// Fails the job of a run that blocks its thread past its timeout. Its token is used up by that, so whatever the run decides
/// in the end is refused.
async fn write_off(server: impl Renew, entry: Entry) {
    let Entry { delivery, .. } = entry;
    let after = delivery.options().timeout.unwrap_or_default();
    delivery.give_up();
    let outcome = outcome_of_failure(&delivery, JobError::new(Elapsed::new(after)));
    loop {
        match server.fail(delivery.clone(), outcome.clone()).await {
            Ok(settled) => {
                let (queue, id) = (delivery.queue(), delivery.id());
                tracing::error!(%queue, %id, ?settled, "the job blocks its thread past its timeout of {after:?}; it was failed");
                return;
            }
            // Else its lease runs out, which comes to the same but for the reason.
            Err(error) if Instant::now() + PAUSE >= delivery.lease_state().until() => {
                tracing::error!(%error, id = %delivery.id(), "the job blocks its thread, and can't be failed");
                return;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Renews some leases of one queue, in a task of its own: a call that hangs must not hold up those of other queues.
async fn renew(server: impl Renew, queue: QueueName, entries: Vec<(u64, Entry)>, held: Weak<Held>) {
    let sent = Instant::now();
    let leases = entries.iter().map(|(_, entry)| Extend { lease: entry.delivery.lease(), term: entry.term }).collect();
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
