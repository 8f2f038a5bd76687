use super::ScheduleError;
use crate::{EnqueueError, job::NameError, store::CallError};

/// Why something wasn't done with a recurring job.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
/// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
/// # async fn example(queue: emq::Queue) {
/// use std::time::Duration;
/// use emq::{RecurringError, Schedule};
///
/// let too_often = Schedule::every(Duration::ZERO);
/// match queue.recurring().upsert("ping", too_often, PingJob {}).await {
///     Err(RecurringError::Schedule(error)) => println!("{error}"),
///     other => println!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecurringError {
    /// Its name can't be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its schedule is none.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Its job can't be enqueued: its payload can't be encoded or is too large, or its group can't be one.
    #[error(transparent)]
    Job(#[from] EnqueueError),
    /// The server didn't carry it out, or didn't say whether it did. Doing it again is harmless.
    #[error(transparent)]
    Call(#[from] CallError),
}
