//! The jobs: one for each way in which a run can end.

use std::{fmt, future::pending, thread, time::Duration};

use emq::{JobContext, JobError, State, job};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::ledger::{Ledger, What};

/// The queue of all of them.
pub(crate) const QUEUE: &str = "soak";

/// How long a finished job is remembered, and its result kept: the `retention` below.
pub(crate) const RETENTION: Duration = Duration::from_secs(60);

/// The lanes that some of them wait in, and the most of its jobs that may be active at a time, where there is a limit.
pub(crate) const LANES: [(&str, Option<u32>); 6] =
    [("a", None), ("b", None), ("c", Some(1)), ("d", Some(3)), ("e", Some(8)), ("f", None)];

/// Ends the message of each panic that is meant, so that it isn't printed.
pub(crate) const MEANT: &str = "as it is meant to";

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

/// What a job is to come to, unless it is removed before.
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
    ledger.note(id, fence, What::Begin).await?;
    match plan {
        Plan::Succeed { ms } => sleep(Duration::from_millis(ms)).await,
        Plan::Flaky { failures } if ctx.failures() < failures => return Err(JobError::new("not yet")),
        Plan::Panic { failures } if ctx.failures() < failures => panic!("a job panics, {MEANT}"),
        Plan::Snooze { times } if ledger.snoozes(id).await? < times => {
            ledger.note(id, fence, What::Snooze).await?;
            return Err(JobError::snooze(Duration::from_millis(200)));
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
        Plan::Fatal => return Err(JobError::permanent("for good")),
        Plan::Hopeless => return Err(JobError::new("never")),
        Plan::Doomed => panic!("a job panics each time, {MEANT}"),
        Plan::Flaky { .. } | Plan::Panic { .. } | Plan::Snooze { .. } | Plan::FailLate | Plan::Carry { .. } => {}
    }
    ledger.effect(id, fence).await?;
    // So that a kill can come between the effect and the completion.
    sleep(Duration::from_millis(5)).await;
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
    ledger.note(id, fence, What::Begin).await?;
    if ctx.failures() < times {
        pending::<()>().await;
    }
    ledger.effect(id, fence).await?;
    ledger.note(id, fence, What::End).await?;
    Ok(())
}
