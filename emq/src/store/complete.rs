use std::time::Duration;

use bytes::Bytes;
use fred::types::Value;

use super::{
    Lease, Settled, Store,
    error::CallError,
    reply::Reply,
    script::{Script, millis, number, script},
};

pub(super) static SCRIPT: Script<8, 0> = script!("complete",
    uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "fence", "complete"
);

/// How long a finished job is remembered at least. Its marker is what refuses a worker that still believes in an old
/// claim, and what keeps a new job of the same id, whose tokens begin at 1 again, from being settled by it.
const LEAST_RETENTION: Duration = Duration::from_secs(60);

/// The most jobs that one call completes: the server is given two keys for each in one command.
pub(crate) const MAX_COMPLETIONS: usize = 250;

/// A job that is done.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) lease: Lease,
    pub(crate) retention: Duration,
    pub(crate) result: Option<Bytes>,
}

impl Done {
    /// Whether all but the id is the same.
    fn ends_like(&self, other: &Self) -> bool {
        self.lease.token() == other.lease.token() && self.retention == other.retention && self.result == other.result
    }
}

impl Store {
    pub(crate) async fn complete(&self, job: Done) -> Result<Settled, CallError> {
        let settled = self.complete_many(&[job]).await?;
        settled.first().copied().ok_or(CallError::UnexpectedReply { call: "complete", detail: "no answer".into() })
    }

    /// Completes up to [`MAX_COMPLETIONS`] jobs, and answers for each what became of it.
    pub(crate) async fn complete_many(&self, jobs: &[Done]) -> Result<Vec<Settled>, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with_more(
            [
                keys.rows.clone(),
                keys.active.clone(),
                keys.pending.clone(),
                keys.done.clone(),
                keys.completed.clone(),
                keys.events.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [],
            arguments(jobs),
        );
        read("complete", self.connection.call(call).await?.value, jobs.len())
    }
}

/// The jobs in groups of those that stand together and end alike.
pub(super) fn arguments(jobs: &[Done]) -> Vec<Value> {
    let mut args = Vec::with_capacity(jobs.len() + 4);
    for group in jobs.chunk_by(Done::ends_like) {
        let Some(Done { lease, retention, result }) = group.first() else { continue };
        args.push(number(lease.token()));
        args.push(millis((*retention).max(LEAST_RETENTION)));
        args.push(result.clone().unwrap_or_default().into());
        args.push(number(group.len() as u64));
        args.extend(group.iter().map(|job| Value::from(job.lease.id().as_str().to_owned())));
    }
    args
}

/// One word per job, or one for all.
pub(super) fn read(call: &'static str, reply: Value, jobs: usize) -> Result<Vec<Settled>, CallError> {
    if reply.as_str().is_some_and(|word| word == "OK") {
        return Ok(vec![Settled::Accepted; jobs]);
    }
    let mut reply = Reply::list(call, reply)?;
    if reply.len() != jobs {
        let detail = format!("{} answers for {jobs} jobs", reply.len());
        return Err(CallError::UnexpectedReply { call, detail });
    }
    (0..jobs).map(|_| Settled::read(call, &reply.text()?.into())).collect()
}
