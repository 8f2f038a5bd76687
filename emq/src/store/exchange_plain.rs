//! The short form of `exchange` and of `claim`, for few jobs that are plain.

use std::time::Duration;

use fred::types::Value;
use tokio::time::Instant;

use super::{
    ClaimCall, Store,
    claim::{Batch, leased_until, read_batch},
    complete::{Done, plain_arguments},
    error::CallError,
    reply::Reply,
    script::{Invocation, Script, script},
    wait::Waiter,
};

pub(super) static SCRIPT: Script<11, 5> = script!("exchange_plain", uses "clock", "guard", "waiting", "events");

/// How many jobs the short form completes, and how many it hands out, at most.
pub(crate) const MOST_PLAIN: usize = 16;

/// `None` where the short form hasn't done.
fn read_plain(reply: Value, claim: &ClaimCall<'_>, leased_until: Instant) -> Result<Option<Batch>, CallError> {
    if reply.is_null() {
        return Ok(None);
    }
    read_batch(&mut Reply::list("exchange_plain", reply)?, claim, leased_until).map(Some)
}

impl Store {
    /// The call of the short form.
    fn plain(&self, jobs: &[Done], claim: &ClaimCall<'_>) -> Invocation {
        let keys = &self.keys;
        let [n, lease, worker, request] = claim.arguments();
        let (retention, ids) = plain_arguments(jobs);
        SCRIPT.with_more(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.done.clone(),
                keys.marker.clone(),
                keys.meta.clone(),
                keys.claims.clone(),
                keys.completed.clone(),
                keys.events.clone(),
                keys.root.clone(),
            ],
            [n, lease, worker, request, retention],
            ids,
        )
    }

    /// Completes jobs that all [are plain](super::are_plain), and claims up to [`MOST_PLAIN`]; `None` if only
    /// [`exchange`](Self::exchange) can do that, or without jobs to complete [`claim`](Self::claim). Then nothing is done.
    pub(crate) async fn exchange_plain(
        &self,
        jobs: &[Done],
        claim: &ClaimCall<'_>,
    ) -> Result<Option<Batch>, CallError> {
        let leased_until = leased_until(claim);
        let answer = self.connection.call(self.plain(jobs, claim)).await?;
        read_plain(answer.value, claim, leased_until)
    }

    /// Claims up to `max` jobs as soon as the marker of the queue is set, or after `longest`; `is_plain`: by the short form.
    /// Sent once. What it takes is leased for up to `longest` more than it is known for.
    pub(crate) async fn claim_when_woken(
        &self,
        waiter: &Waiter,
        claim: &ClaimCall<'_>,
        is_plain: bool,
        longest: Duration,
    ) -> Result<Option<Batch>, CallError> {
        let call = if is_plain { self.plain(&[], claim) } else { self.claim_of(claim) };
        let leased_until = leased_until(claim);
        let answer = waiter.wait_and_call(&self.keys.marker, longest, call).await?;
        read_plain(answer, claim, leased_until)
    }
}
