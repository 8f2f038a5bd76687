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
        (self.lease.token(), self.lease.is_plain()) == (other.lease.token(), other.lease.is_plain())
            && (self.retention, &self.result) == (other.retention, &other.result)
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
    let mut args = Vec::with_capacity(jobs.len() + 5);
    for group in jobs.chunk_by(Done::ends_like) {
        let Some(Done { lease, retention, result }) = group.first() else { continue };
        args.push(number(lease.token()));
        args.push(millis((*retention).max(LEAST_RETENTION)));
        args.push(result.clone().unwrap_or_default().into());
        args.push(if lease.is_plain() { "1" } else { "" }.into());
        args.push(number(group.len() as u64));
        args.extend(group.iter().map(|job| Value::from(job.lease.id().as_str().to_owned())));
    }
    args
}

/// Whether the short form of an exchange completes these: each was plain when it was claimed, and that for the first time,
/// leaves no result, and is remembered as long as the others.
pub(crate) fn are_plain(jobs: &[Done]) -> bool {
    let Some(first) = jobs.first() else { return true };
    let is_plain = first.lease.is_plain() && first.lease.token() == 1 && first.result.is_none();
    is_plain && jobs.iter().all(|job| job.ends_like(first))
}

/// The retention of jobs that are plain, and their ids.
pub(super) fn plain_arguments(jobs: &[Done]) -> (Value, Vec<Value>) {
    let retention = jobs.first().map_or(LEAST_RETENTION, |job| job.retention.max(LEAST_RETENTION));
    (millis(retention), jobs.iter().map(|job| Value::from(job.lease.id().as_str().to_owned())).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn done(id: &str, token: u64, retention: u64, result: &'static str) -> Done {
        let lease = Lease::new(id.parse().unwrap(), token);
        let result = (!result.is_empty()).then(|| Bytes::from_static(result.as_bytes()));
        Done { lease, retention: Duration::from_secs(retention), result }
    }

    #[test]
    fn jobs_that_end_alike_go_in_one_group() {
        let (a, b, c) = ("JOB0JZGkP9AMva", "JOB0JZGkP9AMvb", "JOB0JZGkP9AMvc");
        let told = |jobs: &[Done]| -> Vec<String> {
            arguments(jobs).iter().map(|argument| argument.as_string().unwrap()).collect()
        };
        assert!(told(&[]).is_empty());
        assert_eq!(told(&[done(a, 1, 60, ""), done(b, 1, 60, "")]), ["1", "60000", "", "", "2", a, b]);
        assert_eq!(
            told(&[done(a, 1, 60, ""), done(b, 2, 60, ""), done(c, 2, 90, "")]),
            ["1", "60000", "", "", "1", a, "2", "60000", "", "", "1", b, "2", "90000", "", "", "1", c]
        );
        assert_eq!(
            told(&[done(a, 1, 60, "7"), done(b, 1, 60, "7"), done(c, 1, 60, "")]),
            ["1", "60000", "7", "", "2", a, b, "1", "60000", "", "", "1", c]
        );
        assert_eq!(told(&[done(a, 1, 0, "")])[1], "60000", "what is finished is remembered for a while");
    }

    #[test]
    fn the_short_form_is_for_first_runs_of_plain_jobs_without_results_that_are_remembered_as_long() {
        let (a, b) = ("JOB0JZGkP9AMva", "JOB0JZGkP9AMvb");
        let plain = |id, token, retention, result| {
            let lease = Lease::plain(str::parse(id).unwrap(), token);
            Done { lease, ..done(id, token, retention, result) }
        };
        assert!(are_plain(&[]));
        assert!(are_plain(&[plain(a, 1, 60, ""), plain(b, 1, 60, "")]));
        for (other, why) in [
            (done(b, 1, 60, ""), "its claim had more to tell of it"),
            (plain(b, 2, 60, ""), "it ran before"),
            (plain(b, 1, 90, ""), "it is remembered longer"),
            (plain(b, 1, 60, "7"), "it leaves a result"),
        ] {
            assert!(!are_plain(&[plain(a, 1, 60, ""), other]), "{why}");
        }
        for alone in [done(a, 1, 60, ""), plain(a, 2, 60, ""), plain(a, 1, 60, "7")] {
            assert!(!are_plain(&[alone]));
        }
        let (retention, ids) = plain_arguments(&[plain(a, 1, 0, ""), plain(b, 1, 0, "")]);
        assert_eq!(retention.as_string().unwrap(), "60000");
        assert_eq!(ids.iter().map(|id| id.as_string().unwrap()).collect::<Vec<_>>(), [a, b]);
    }

    #[test]
    fn one_word_stands_for_all_if_it_is_that_all_are_done() {
        let all = |reply: Value, jobs| read("complete", reply, jobs);
        assert_eq!(all("OK".into(), 2).unwrap(), [Settled::Accepted; 2]);
        let mixed = Value::Array(vec!["OK".into(), "STALE".into()]);
        assert_eq!(all(mixed.clone(), 2).unwrap(), [Settled::Accepted, Settled::Stale]);
        for (wrong, jobs) in [(mixed, 3), ("STALE".into(), 1), (Value::Null, 1), (Value::Array(vec!["so".into()]), 1)] {
            assert!(matches!(all(wrong, jobs), Err(CallError::UnexpectedReply { call: "complete", .. })));
        }
    }
}
