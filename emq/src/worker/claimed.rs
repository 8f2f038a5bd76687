//! What a claim brought, on its way to the fetcher, and how it goes back if nobody waits for it.

use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::{line::Line, slots::Promised, stats::Counters};
use crate::{
    queue::Claimer,
    store::{Batch, CallError, Lease},
};

/// What a claim brought, and the slots for that.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) batch: Batch,
    pub(super) slots: Promised,
}

/// Gives a claim its answer, or the jobs back if it isn't waited for any more.
pub(super) async fn hand_out(
    line: &Line,
    counters: &Counters,
    answer: oneshot::Sender<Result<Claimed, CallError>>,
    claimed: Result<Claimed, CallError>,
) {
    let Err(Ok(unwanted)) = answer.send(claimed) else { return };
    let Batch { jobs, dropped, .. } = unwanted.batch;
    counters.claimed(jobs.len(), dropped);
    release(line, counters, jobs.iter().map(|job| job.lease)).await;
}

/// Gives back what a claim took whose answer hasn't come, and says goodbye.
pub(super) async fn leave(line: &Line, counters: &Counters, mut claimer: Claimer) {
    if claimer.is_owed() {
        match claimer.claim(1).await {
            Ok(batch) => {
                counters.claimed(batch.jobs.len(), batch.dropped);
                release(line, counters, batch.jobs.iter().map(|job| job.lease)).await;
            }
            Err(error) => tracing::debug!(%error, "what the last claim took comes back when its leases run out"),
        }
    }
    if let Err(error) = claimer.leave().await {
        tracing::debug!(%error, "the server wasn't told that the worker left; it forgets by itself");
    }
}

pub(super) async fn release(line: &Line, counters: &Counters, leases: impl Iterator<Item = Lease>) {
    let released = leases.map(async |lease| match line.store.release(&lease).await {
        Ok(_) => counters.released(),
        Err(error) => tracing::warn!(%error, id = %lease.id(), "the job comes back when its lease runs out"),
    });
    join_all(released).await;
}
