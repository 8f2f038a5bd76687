//! The jobs: one for each way in which a run can end.

use std::{fmt, future::pending, thread, time::Duration};

use emq::{JobContext, JobError, State, inject::ReportError, job};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    event::What,
    ledger::{Ledger, LedgerError},
    stay::Stay,
};

/// The queue of all of them whose end is accounted for one by one.
pub(crate) const QUEUE: &str = "soak";

/// The queue of those that an operator may drain and purge at any time: who is gone is only counted.
pub(crate) const SCRAP: &str = "scrap";

/// How long a finished job is remembered, and its result kept: the `retention` below.
pub(crate) const RETENTION: Duration = Duration::from_secs(60);

/// Ends the message of each panic that is meant, so that it isn't printed.
pub(crate) const MEANT: &str = "as it is meant to";

/// How long a job waits that snoozes.
pub(crate) const SNOOZE: Duration = Duration::from_millis(200);

/// How long a lane waits whose job is told that it comes too often.
pub(crate) const TOO_OFTEN: Duration = Duration::from_millis(250);

/// What runs for longer than that may well lose its lease.
const LONG: u64 = 1_000;

/// What a job does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Plan {
    /// Works for so many ms, and succeeds.
    Succeed { ms: u64 },
    /// Fails so often, and succeeds then.
    Flaky { failures: u32 },
    /// Panics so often, and succeeds then.
    Panic { failures: u32 },
    /// Snoozes so often, and succeeds then.
    Snooze { times: u64 },
    /// Is told so often that it comes too often, and succeeds then.
    Limited { times: u64 },
    /// Fails so often, and works for so many ms and succeeds then. Another may do so in its place, whose mark is a later one.
    Marked { mark: u64, failures: u32, ms: u64 },
    /// Has its effect, and fails all the same, once.
    FailLate,
    /// Blocks its thread for so many ms, which is longer than its lease.
    Block { ms: u64 },
    /// Has a large payload, and succeeds if it is what [`load`] makes of its length.
    Carry { length: usize, load: String },
    /// Finds that there is nothing to do.
    Discard,
    /// Fails for good at once.
    Fatal,
    /// Fails until its attempts are used up.
    Hopeless,
    /// Panics until its attempts are used up.
    Doomed,
}

/// What a job is to come to, unless it is removed or cancelled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Completed, with its effect.
    Done,
    /// Completed, without one.
    Discarded,
    /// A dead letter after so many failures.
    Dead { failures: u32 },
    /// As `Done`, or a dead letter that expired before its first run.
    DoneOrExpired,
    /// Anything: it is in the queue that is drained and purged.
    Any,
}

impl Plan {
    pub(crate) fn end(&self) -> End {
        match self {
            Self::Fatal => End::Dead { failures: 1 },
            Self::Hopeless | Self::Doomed => End::Dead { failures: 3 },
            Self::Discard => End::Discarded,
            _ => End::Done,
        }
    }

    /// Whether it may well run for longer than its lease.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, Self::Block { .. } | Self::Succeed { ms: LONG.. })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Carry { length, .. } => write!(f, "Carry {{ length: {length} }}"),
            _ => fmt::Debug::fmt(self, f),
        }
    }
}

/// Text of so many characters, among them some that are escaped and some of several bytes.
pub(crate) fn load(length: usize) -> String {
    "load \"\\\n\u{1}äß漢🦀".chars().cycle().take(length).collect()
}

/// Does what its plan says. Whoever finds a newer run of its job in the ledger has no effect, and says that it succeeded:
/// the server has to refuse that.
///
/// However often runs are cut short on a machine that is too busy, the job isn't to blame: hence the many attempts.
#[job(
    queue = "soak",
    name = "work",
    max_attempts = 100_000,
    backoff = exponential("50ms", max = "400ms"),
    retention = "1m",
    derive(Clone, Debug),
)]
pub(crate) async fn work(plan: Plan, State(ledger): State<Ledger>, ctx: JobContext) -> Result<u64, JobError> {
    let (id, fence) = (ctx.id(), ctx.fence());
    ledger.begin(&ctx).await?;
    if plan.is_long() {
        tokio::spawn(linger(ctx.clone(), ledger.clone()));
    }
    let stay = Stay::begin(&ctx, &ledger).await?;
    match plan {
        Plan::Succeed { ms } => sleep(Duration::from_millis(ms)).await,
        Plan::Marked { mark, failures, ms } => {
            ledger.note_number(id, fence, What::Mark, mark).await?;
            if ctx.failures() < failures {
                return Err(JobError::new("not yet"));
            }
            sleep(Duration::from_millis(ms)).await;
        }
        Plan::Flaky { failures } if ctx.failures() < failures => return Err(JobError::new("not yet")),
        Plan::Panic { failures } if ctx.failures() < failures => panic!("a job panics, {MEANT}"),
        Plan::Snooze { times } if ledger.count(id, What::Snooze).await? < times => {
            ledger.note(id, fence, What::Snooze).await?;
            return Err(JobError::snooze(SNOOZE));
        }
        Plan::Limited { times } if ledger.count(id, What::Limited).await? < times => {
            ledger.note(id, fence, What::Limited).await?;
            return Err(ctx.rate_limited(TOO_OFTEN));
        }
        // On this thread, and not on one for blocking work.
        Plan::Block { ms } => thread::sleep(Duration::from_millis(ms)),
        Plan::FailLate if ctx.failures() == 0 => {
            ledger.effect(id, fence).await?;
            return Err(JobError::new("after the effect"));
        }
        Plan::Carry { length, load: carried } if carried != load(length) => {
            return Err(JobError::permanent("the payload was changed"));
        }
        Plan::Discard => return Err(JobError::discard("nothing to do")),
        Plan::Fatal => {
            tell(&ctx, &ledger).await?;
            return Err(JobError::permanent("for good"));
        }
        Plan::Hopeless => {
            tell(&ctx, &ledger).await?;
            return Err(JobError::new("never"));
        }
        Plan::Doomed => {
            tell(&ctx, &ledger).await?;
            panic!("a job panics each time, {MEANT}")
        }
        Plan::Flaky { .. }
        | Plan::Panic { .. }
        | Plan::Snooze { .. }
        | Plan::Limited { .. }
        | Plan::FailLate
        | Plan::Carry { .. } => {}
    }
    ledger.effect(id, fence).await?;
    // So that a kill can come between the effect and the completion.
    sleep(Duration::from_millis(5)).await;
    stay.end(&ctx, &ledger).await?;
    ledger.note(id, fence, What::End).await?;
    Ok(fence)
}

/// Hangs past its timeout in its first runs, and succeeds then.
#[job(
    queue = "soak",
    name = "hang",
    max_attempts = 100_000,
    timeout = "400ms",
    backoff = fixed("100ms"),
    retention = "1m",
    derive(Clone, Debug),
)]
pub(crate) async fn hang(times: u32, State(ledger): State<Ledger>, ctx: JobContext) -> Result<(), JobError> {
    let (id, fence) = (ctx.id(), ctx.fence());
    ledger.begin(&ctx).await?;
    if ctx.failures() < times {
        pending::<()>().await;
    }
    ledger.effect(id, fence).await?;
    ledger.note(id, fence, What::End).await?;
    Ok(())
}

/// The job of a slot of a recurring job: notes which.
#[job(
    queue = "soak",
    name = "tick",
    max_attempts = 100_000,
    backoff = fixed("100ms"),
    retention = "1m",
    derive(Clone, Debug),
)]
pub(crate) async fn tick(name: String, State(ledger): State<Ledger>, ctx: JobContext) -> Result<(), JobError> {
    let (id, fence) = (ctx.id(), ctx.fence());
    ledger.begin(&ctx).await?;
    let slot = ctx.slot().ok_or_else(|| JobError::permanent("it is of no slot"))?;
    ledger.slot(name, slot, id).await?;
    ledger.effect(id, fence).await?;
    ledger.note(id, fence, What::End).await?;
    Ok(())
}

/// Says how far it is and what it does, and notes in the ledger that this was kept.
async fn tell(ctx: &JobContext, ledger: &Ledger) -> Result<(), LedgerError> {
    let fence = ctx.fence();
    if ctx.progress(&fence).await.is_ok() && ctx.log(fence.to_string()).await.is_ok() {
        ledger.note(ctx.id(), fence, What::Told).await?;
    }
    Ok(())
}

/// What a run has left behind: it reports for the job when a newer run has begun, as a thread would that isn't dropped
/// with its run.
async fn linger(ctx: JobContext, ledger: Ledger) {
    let (id, fence) = (ctx.id(), ctx.fence());
    for _ in 0..10 {
        sleep(Duration::from_millis(500)).await;
        if !ledger.is_overtaken(id, fence).await.unwrap_or(false) {
            continue;
        }
        for told in [ctx.progress("too late").await, ctx.log("too late").await] {
            let what = match told {
                Ok(()) => What::ToldLate,
                Err(ReportError::Stale) => What::RefusedLate,
                Err(_) => continue,
            };
            // Nobody is there to whom an error would say anything.
            let _ = ledger.note(id, fence, what).await;
        }
        return;
    }
}
