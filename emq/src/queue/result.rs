//! What became of a job, and waiting for it.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Queue;
use crate::{
    clock::later,
    job::{JobId, Returns},
    store::{CallError, JobState, Stored},
};

/// How long a wait lasts before the job is looked at without having heard of it.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The same where nothing can be heard.
const POLL: Duration = Duration::from_millis(500);

/// What became of a job.
///
/// # Examples
///
/// ```
/// use emq::{JobResult, JobState};
///
/// assert!(JobResult::Done(7).is_ended());
/// assert!(!JobResult::<u64>::Unfinished(JobState::Pending).is_ended());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobResult<T> {
    /// It is done, and this is its result.
    Done(T),
    /// It is done and left no result, although one of its type should have: it was discarded, or its result was kept for
    /// less time than its id.
    Empty,
    /// It failed for good, and is a dead letter.
    Dead {
        /// The text of the failure.
        error: String,
    },
    /// It was cancelled.
    Cancelled,
    /// It was removed, or trimmed as a dead letter.
    Removed,
    /// It hasn't ended yet.
    Unfinished(JobState),
    /// There is no such job: it was never enqueued, or is forgotten.
    Unknown,
}

impl<T> JobResult<T> {
    /// Whether nothing more will become of the job by itself. A dead letter can be revived.
    ///
    /// ```
    /// assert!(emq::JobResult::<u64>::Cancelled.is_ended());
    /// ```
    #[must_use]
    pub fn is_ended(&self) -> bool {
        !matches!(self, Self::Unfinished(_))
    }
}

/// Why it can't be told what became of a job.
///
/// # Examples
///
/// ```
/// fn is_for_another_version(error: &emq::ResultError) -> bool {
///     matches!(error, emq::ResultError::Decode { .. })
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The result isn't of the type that was asked for: another version of the job left it, or it is another job's.
    #[error("the result of the job {id} can't be decoded: {source}; is it of another version or type?")]
    Decode {
        /// The job.
        id: JobId,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The server can't be asked.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Why a wait brought no result.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
/// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
/// # impl emq::Returns for EnrollJob { type Output = u64; }
/// # async fn example(ticket: emq::Ticket<EnrollJob>) {
/// use emq::WaitError;
///
/// match ticket.wait().await {
///     Ok(seat) => println!("seat {seat}"),
///     Err(WaitError::Dead { error, .. }) => println!("it failed: {error}"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The job failed for good.
    #[error("the job {id} failed: {error}")]
    Dead {
        /// The job.
        id: JobId,
        /// The text of the failure.
        error: String,
    },
    /// The job was cancelled.
    #[error("the job {id} was cancelled")]
    Cancelled {
        /// The job.
        id: JobId,
    },
    /// The job was removed, or trimmed as a dead letter.
    #[error("the job {id} was removed")]
    Removed {
        /// The job.
        id: JobId,
    },
    /// The job is done and left no result: it was discarded, or its result is forgotten.
    #[error("the job {id} is done, and left no result")]
    Empty {
        /// The job.
        id: JobId,
    },
    /// There is no such job.
    #[error(
        "there is no job {id}: it was never enqueued into this queue, or has ended and is forgotten; raise the job's retention to be able to ask for longer"
    )]
    Unknown {
        /// The job.
        id: JobId,
    },
    /// The time was over first.
    #[error("the job {id} has not ended yet: it is {state:?}")]
    TimedOut {
        /// The job.
        id: JobId,
        /// Where it stood when it was looked at last.
        state: JobState,
    },
    /// The result isn't of the type that was asked for.
    #[error("the result of the job {id} can't be decoded: {source}; is it of another version or type?")]
    Decode {
        /// The job.
        id: JobId,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The server can't be asked.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl From<ResultError> for WaitError {
    fn from(error: ResultError) -> Self {
        match error {
            ResultError::Decode { id, source } => Self::Decode { id, source },
            ResultError::Call(error) => Self::Call(error),
        }
    }
}

impl Queue {
    /// What became of a job, as far as it is known; a job's result is kept for its type's retention.
    ///
    /// # Errors
    ///
    /// [`ResultError`] if the result isn't of the type that `J` names, or the server can't be asked.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::ResultError> {
    /// if let emq::JobResult::Done(seat) = queue.result::<EnrollJob>(id).await? {
    ///     println!("seat {seat}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn result<J>(&self, id: JobId) -> Result<JobResult<J::Output>, ResultError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        read(id, self.get(id).await?)
    }

    /// Waits until a job has ended, and answers its result. A job that failed for good has ended; one that is to be retried
    /// hasn't.
    ///
    /// It is told of the end by the server, on one connection for all who wait with this client. What gets lost on the way,
    /// with a connection, costs at most 5 s: it looks by itself then. Where the server doesn't let it listen, it looks twice
    /// a second.
    ///
    /// # Errors
    ///
    /// [`WaitError`] if the job ended in another way than done, or isn't known, its result isn't of the type that `J` names,
    /// or the server can't be asked for as long as calls are repeated.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::WaitError> {
    /// let seat = queue.wait::<EnrollJob>(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait<J>(&self, id: JobId) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.wait_until::<J>(id, None).await
    }

    /// As [`wait`](Self::wait), but for so long at most.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait); and [`WaitError::TimedOut`] if the job hasn't ended by then.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::WaitError> {
    /// let seat = queue.wait_for::<EnrollJob>(id, std::time::Duration::from_secs(5)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_for<J>(&self, id: JobId, timeout: Duration) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.wait_until::<J>(id, Some(later(Instant::now(), timeout))).await
    }

    async fn wait_until<J>(&self, id: JobId, deadline: Option<Instant>) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        let listen = self.client.listen(self.store.events_channel());
        let listening = match deadline {
            Some(deadline) => timeout_at(deadline, listen).await.ok().and_then(Result::ok),
            None => listen.await.ok(),
        };
        let end = listening.as_ref().map(|(subscriber, _)| subscriber.end_of(id));
        let pause = if listening.is_some() { LONGEST_WAIT } else { POLL };
        loop {
            // Before the look: what happens after it wakes.
            let mut told = end.as_ref().map(|end| Box::pin(end.notify.notified()));
            if let Some(told) = &mut told {
                told.as_mut().enable();
            }
            let state = match self.result::<J>(id).await? {
                JobResult::Done(output) => return Ok(output),
                JobResult::Unfinished(state) => state,
                JobResult::Empty => return Err(WaitError::Empty { id }),
                JobResult::Dead { error } => return Err(WaitError::Dead { id, error }),
                JobResult::Cancelled => return Err(WaitError::Cancelled { id }),
                JobResult::Removed => return Err(WaitError::Removed { id }),
                JobResult::Unknown => return Err(WaitError::Unknown { id }),
            };
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(WaitError::TimedOut { id, state });
            }
            let look = later(Instant::now(), pause);
            let told = async {
                match told {
                    Some(told) => told.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = told => {}
                () = sleep_until(deadline.map_or(look, |deadline| look.min(deadline))) => {}
            }
        }
    }
}

fn read<T: DeserializeOwned>(id: JobId, stored: Option<Stored>) -> Result<JobResult<T>, ResultError> {
    let Some(stored) = stored else { return Ok(JobResult::Unknown) };
    Ok(match stored.state {
        JobState::Finished => match stored.result {
            Some(result) => {
                let output = serde_json::from_slice(&result).map_err(|source| ResultError::Decode { id, source })?;
                JobResult::Done(output)
            }
            // What is `null` in JSON isn't kept.
            None => serde_json::from_str("null").map_or(JobResult::Empty, JobResult::Done),
        },
        JobState::Dead => JobResult::Dead { error: stored.last_error.unwrap_or_default() },
        JobState::Cancelled => JobResult::Cancelled,
        JobState::Removed => JobResult::Removed,
        state => JobResult::Unfinished(state),
    })
}
