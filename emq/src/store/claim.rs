use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use fred::types::Value;
use tokio::time::Instant;

use super::{
    Store,
    error::CallError,
    reply::{Reply, unlike},
    script::{Invocation, MAX_WAIT, Script, millis, number, script},
};
use crate::job::{Job, JobError, JobId};

pub(super) static SCRIPT: Script<11, 4> = script!("claim",
    uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "turns", "claim"
);

/// How many values a claim answers of each job, and of one that has more to tell.
const VALUES: usize = 4;
const VALUES_OF_MORE: usize = 5;

/// The right to settle a job: its id and the fencing token of one claim.
///
/// # Examples
///
/// ```
/// let id: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
/// let lease = emq::Lease::new(id, 3);
/// assert_eq!((lease.id(), lease.token()), (id, 3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    id: JobId,
    token: u64,
    /// Whether the claim found that the job has no lane and nothing of what few jobs have. Then a completion needn't look
    /// for that in the row: none of it comes to a job while it is active.
    is_plain: bool,
}

/// By what it is the right to: the same job, claimed as often.
impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        (self.id, self.token) == (other.id, other.token)
    }
}

impl Eq for Lease {}

impl Hash for Lease {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.id, self.token).hash(state);
    }
}

impl Lease {
    /// The lease of a claim that was made elsewhere; [`Claimed::lease`] is where one comes from.
    ///
    /// ```
    /// let id: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    /// assert_eq!(emq::Lease::new(id, 3), emq::Lease::new(id, 3));
    /// ```
    #[must_use]
    pub fn new(id: JobId, token: u64) -> Self {
        Self { id, token, is_plain: false }
    }

    /// The job.
    ///
    /// ```
    /// # let id: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    /// assert_eq!(emq::Lease::new(id, 3).id(), id);
    /// ```
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The fencing token: how often the job had been claimed when this lease began.
    ///
    /// ```
    /// # let id: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    /// assert_eq!(emq::Lease::new(id, 3).token(), 3);
    /// ```
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }

    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    #[cfg(test)]
    pub(super) fn plain(id: JobId, token: u64) -> Self {
        Self { id, token, is_plain: true }
    }
}

/// A claimed job, as it stands in the queue.
///
/// # Examples
///
/// ```no_run
/// # async fn example(mut claimer: emq::Claimer) -> Result<(), emq::CallError> {
/// for job in claimer.claim(10).await?.jobs {
///     println!("{:?} has failed {} times", job.name, job.failures);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// The right to settle it.
    pub lease: Lease,
    /// The name of its type; `None` on a job that another implementation of the wire has written.
    pub name: Option<String>,
    /// The encoded payload.
    pub payload: Bytes,
    /// How many runs ended in an error.
    pub failures: u32,
    /// How many runs ended because their lease ran out.
    pub stalled: u32,
    /// After how many failures it is to be buried, if its enqueue said so.
    pub max_attempts: Option<u32>,
    /// What its producer sent along.
    pub headers: HashMap<String, String>,
    /// The lane it waited in; `None` for the flat line.
    pub group: Option<String>,
    /// How long the lease lasts from the claim, unless it is renewed.
    pub term: Duration,
    /// Until when the lease surely lasts, by this process's clock.
    pub leased_until: Instant,
}

impl Claimed {
    /// Decodes the payload as the job `J`.
    ///
    /// # Errors
    ///
    /// A permanent [`JobError`] that says what is wrong with the payload, and nothing of its content.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Greet { name: String }
    /// # impl emq::Job for Greet { const NAME: &'static str = "greet"; }
    /// # fn example(job: &emq::Claimed) -> Result<(), emq::JobError> {
    /// let Greet { name } = job.decode()?;
    /// # Ok(()) }
    /// ```
    pub fn decode<J: Job>(&self) -> Result<J, JobError> {
        crate::job::decode(&self.payload)
    }
}

/// What a claim brought.
///
/// # Examples
///
/// ```no_run
/// # async fn example(mut claimer: emq::Claimer) -> Result<(), emq::CallError> {
/// let batch = claimer.claim(10).await?;
/// if batch.jobs.is_empty() {
///     println!("nothing to do for {:?}", batch.next_event);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// The jobs, in the order in which lanes take turns; within a lane oldest first within a priority.
    pub jobs: Vec<Claimed>,
    /// Whether the queue has more that can be claimed now.
    pub more: bool,
    /// How long until a scheduled job falls due, a lease runs out, or a limit lets the next job start, whichever comes
    /// first; `None` if there is none of that, and while [`more`](Self::more) can be claimed.
    pub next_event: Option<Duration>,
    /// How many ids were dropped because they had no row: leftovers of another implementation of the wire.
    pub dropped: u64,
    /// How many jobs were buried instead of being handed out, because they had expired.
    pub expired: u64,
}

/// A claim, as often as it has to be sent.
#[derive(Clone, Debug)]
pub(crate) struct ClaimCall<'a> {
    pub(crate) worker: &'a str,
    pub(crate) request: &'a str,
    pub(crate) max: usize,
    pub(crate) lease: Duration,
}

impl ClaimCall<'_> {
    pub(super) fn arguments(&self) -> [Value; 4] {
        let max = self.max.clamp(1, super::MAX_BATCH);
        [number(max as u64), millis(self.lease), self.worker.to_owned().into(), self.request.to_owned().into()]
    }
}

/// Until when what a claim brings is surely leased. To be asked before the call: the lease lasts that long however slow
/// the answer is.
pub(super) fn leased_until(claim: &ClaimCall<'_>) -> Instant {
    Instant::now() + claim.lease.min(MAX_WAIT)
}

pub(super) fn read_batch(reply: &mut Reply, claim: &ClaimCall<'_>, leased_until: Instant) -> Result<Batch, CallError> {
    let request = reply.text()?;
    if request != claim.request {
        // The reply of another call: the client library has lost count of its replies.
        return Err(unlike(reply.call(), &format!("request {request:?} instead of {:?}", claim.request)));
    }
    let more = reply.integer()? == 1;
    let next_event = reply.wait()?;
    let mut dropped = reply.count()?;
    let expired = reply.count()?;
    let mut told = reply.list_part()?;
    let mut jobs = Vec::with_capacity(told.len() / VALUES);
    while told.len() > 0 {
        jobs.push(read_job(&mut told, claim.lease, leased_until)?);
    }
    let mut lanes = reply.list_part()?;
    while lanes.len() > 0 {
        let job = told_of(&mut lanes, &mut jobs)?;
        let lane = lanes.lenient_text()?;
        if let Some(job) = job {
            job.group = lane;
        }
    }
    let mut further = reply.list_part()?;
    while further.len() > 0 {
        read_more(&mut further.list_part()?, &mut jobs)?;
    }
    let all = jobs.len();
    let jobs: Vec<_> = jobs.into_iter().flatten().collect();
    dropped += (all - jobs.len()) as u64;
    Ok(Batch { jobs, more, next_event, dropped, expired })
}

impl Store {
    pub(super) fn claim_of(&self, claim: &ClaimCall<'_>) -> Invocation {
        let keys = &self.keys;
        SCRIPT.with(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.marker.clone(),
                keys.meta.clone(),
                keys.claims.clone(),
                keys.failed.clone(),
                keys.events.clone(),
                keys.root.clone(),
            ],
            claim.arguments(),
        )
    }

    /// Claims up to `max` jobs.
    pub(crate) async fn claim(&self, claim: &ClaimCall<'_>) -> Result<Batch, CallError> {
        let leased_until = leased_until(claim);
        let answer = self.connection.call(self.claim_of(claim)).await?;
        read_batch(&mut Reply::list("claim", answer.value)?, claim, leased_until)
    }

    /// Forgets what a worker that leaves has claimed last.
    pub(crate) async fn forget_claims(&self, worker: &str) -> Result<(), CallError> {
        self.connection.command("HDEL", &self.keys.claims, &[worker]).await
    }
}

/// `None` for an id that only the script takes for a job's (its number is out of range), and for a token that somebody
/// has put there. Neither can be named: they go the way of a job whose worker is gone, and the others of the batch are
/// not to suffer for them.
fn read_job(reply: &mut Reply, term: Duration, leased_until: Instant) -> Result<Option<Claimed>, CallError> {
    let (id, token) = (reply.lenient_id()?, reply.lenient_number()?);
    let payload = reply.bytes()?;
    let name = reply.lenient_text()?;
    let (Some(id), Some(token)) = (id, token) else { return Ok(None) };
    Ok(Some(Claimed {
        lease: Lease { id, token, is_plain: true },
        name,
        payload,
        failures: 0,
        stalled: 0,
        max_attempts: None,
        headers: HashMap::new(),
        group: None,
        term,
        leased_until,
    }))
}

/// The job of which there is more to read.
fn told_of<'a>(reply: &mut Reply, jobs: &'a mut [Option<Claimed>]) -> Result<Option<&'a mut Claimed>, CallError> {
    let at = reply.count()?;
    let job = usize::try_from(at).ok().and_then(|at| jobs.get_mut(at));
    let mut job = job.ok_or_else(|| unlike(reply.call(), &format!("more of a job {at} that isn't there")))?.as_mut();
    if let Some(job) = &mut job {
        job.lease.is_plain = false;
    }
    Ok(job)
}

fn read_more(reply: &mut Reply, jobs: &mut [Option<Claimed>]) -> Result<(), CallError> {
    if reply.len() != VALUES_OF_MORE {
        return Err(unlike(reply.call(), &format!("{} values instead of {VALUES_OF_MORE}", reply.len())));
    }
    let Some(job) = told_of(reply, jobs)? else { return Ok(()) };
    job.failures = reply.lenient_number()?.unwrap_or(0);
    job.stalled = reply.lenient_number()?.unwrap_or(0);
    job.max_attempts = reply.lenient_number()?;
    let headers = reply.optional_bytes()?.and_then(|headers| serde_json::from_slice(&headers).ok());
    job.headers = headers.unwrap_or_default();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: ClaimCall<'static> =
        ClaimCall { worker: "w", request: "7", max: 1_001, lease: Duration::from_millis(1_500) };

    fn list(fields: impl IntoIterator<Item = &'static str>) -> Value {
        let field = |field: &str| if field == "_" { Value::Null } else { field.into() };
        Value::Array(fields.into_iter().map(field).collect())
    }

    /// `jobs`, `lanes` and `further` are words, separated by blanks.
    fn answer(
        request: &str,
        more: i64,
        jobs: &'static str,
        lanes: &'static str,
        further: &[&'static str],
    ) -> Result<Batch, CallError> {
        let further = further.iter().map(|values| list(values.split(' '))).collect();
        let lists = [list(jobs.split_whitespace()), list(lanes.split_whitespace()), Value::Array(further)];
        let head = [request.into(), more.into(), 250.into(), 2.into(), 3.into()];
        let parts = head.into_iter().chain(lists).collect();
        read_batch(&mut Reply::list("claim", Value::Array(parts)).unwrap(), &CLAIM, Instant::now())
    }

    #[test]
    fn a_claim_asks_for_no_more_than_a_script_hands_out() {
        assert_eq!(CLAIM.arguments().map(|arg| arg.as_string().unwrap()), ["1000", "1500", "w", "7"]);
        let none = ClaimCall { max: 0, ..CLAIM };
        assert_eq!(none.arguments()[0].as_string().unwrap(), "1");
        let before = Instant::now();
        assert!(leased_until(&CLAIM) >= before + CLAIM.lease);
        assert!(leased_until(&CLAIM) <= Instant::now() + CLAIM.lease);
    }

    #[test]
    fn an_answer_is_read_value_by_value() {
        let jobs = "JOB0JZGkP9AMvv 3 {} send JOB0JZGkP9AMvw 1 [] _ JOB0JZGkP9AMvx 1 7 _";
        let batch = answer("7", 1, jobs, "0 g 2 h", &[r#"0 1 2 5 {"tenant":"north"}"#, "1 _ _ _ _"]).unwrap();
        assert_eq!((batch.more, batch.next_event), (true, Some(Duration::from_millis(250))));
        assert_eq!((batch.dropped, batch.expired, batch.jobs.len()), (2, 3, 3));
        let (full, bare) = (&batch.jobs[0], &batch.jobs[1]);
        assert_eq!(full.lease, Lease::new("JOB0JZGkP9AMvv".parse().unwrap(), 3));
        assert_eq!(
            (full.name.as_deref(), &full.payload[..], full.group.as_deref()),
            (Some("send"), &b"{}"[..], Some("g"))
        );
        assert_eq!((full.failures, full.stalled, full.max_attempts), (1, 2, Some(5)));
        assert_eq!((full.headers["tenant"].as_str(), full.term), ("north", CLAIM.lease));
        assert_eq!((bare.name.as_deref(), &bare.payload[..], bare.group.as_deref()), (None, &b"[]"[..], None));
        assert_eq!((bare.failures, bare.stalled, bare.max_attempts, bare.headers.len()), (0, 0, None, 0));
        assert_eq!(batch.jobs[2].group.as_deref(), Some("h"));
        assert!(batch.jobs.iter().all(|job| !job.lease.is_plain()), "each has a lane, or more to tell");
        let plain = &answer("7", 0, "JOB0JZGkP9AMvv 1 {} send", "", &[]).unwrap().jobs[0].lease;
        assert!(plain.is_plain());
        assert_eq!(*plain, Lease::new(plain.id(), 1), "the right is the same, however much is known of the job");
        assert!(!answer("7", 0, "", "", &[]).unwrap().more);
    }

    #[test]
    fn what_cant_be_named_is_dropped_and_the_others_are_not() {
        let jobs = "JOBzzzzzzzzzzz 3 {} _ JOB0JZGkP9AMvv 3 {} _ JOB0JZGkP9AMvw x {} _";
        let batch = answer("7", 0, jobs, "0 g 1 h", &["0 9 _ _ _", "1 8 _ _ _"]).unwrap();
        assert_eq!((batch.jobs.len(), batch.dropped), (1, 4));
        assert_eq!((batch.jobs[0].failures, batch.jobs[0].group.as_deref()), (8, Some("h")));
    }

    #[test]
    fn an_answer_that_is_no_claims_is_refused() {
        let other =
            |request, jobs, lanes, further: &[&'static str]| answer(request, 0, jobs, lanes, further).unwrap_err();
        for error in [
            other("8", "", "", &[]),
            other("7", "JOB0JZGkP9AMvv", "", &[]),
            other("7", "JOB0JZGkP9AMvv 1 {} _", "1 g", &[]),
            other("7", "JOB0JZGkP9AMvv 1 {} _", "", &["1 _ _ _ _"]),
            other("7", "JOB0JZGkP9AMvv 1 {} _", "", &["0 _ _ _"]),
        ] {
            assert!(matches!(error, CallError::UnexpectedReply { call: "claim", .. }), "{error}");
        }
    }
}
