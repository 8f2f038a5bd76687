use super::{
    ClaimCall, Settled, Store,
    claim::{Batch, leased_until, read_batch},
    complete::{Done, arguments, read},
    error::CallError,
    reply::Reply,
    script::{Script, script},
};

pub(super) static SCRIPT: Script<13, 4> = script!("exchange",
    uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence", "complete", "turns", "claim"
);

impl Store {
    /// Completes jobs and claims others in one call.
    pub(crate) async fn exchange(
        &self,
        jobs: &[Done],
        claim: &ClaimCall<'_>,
    ) -> Result<(Vec<Settled>, Batch), CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with_more(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.done.clone(),
                keys.marker.clone(),
                keys.meta.clone(),
                keys.claims.clone(),
                keys.completed.clone(),
                keys.failed.clone(),
                keys.events.clone(),
                keys.root.clone(),
            ],
            claim.arguments(),
            arguments(jobs),
        );
        let leased_until = leased_until(claim);
        let mut reply = Reply::list("exchange", self.connection.call(call).await?.value)?;
        let settled = read("exchange", reply.part()?, jobs.len())?;
        Ok((settled, read_batch(&mut reply, claim, leased_until)?))
    }
}
