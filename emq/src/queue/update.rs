use std::{
    fmt,
    future::IntoFuture,
    pin::Pin,
    time::{Duration, SystemTime},
};

use super::Queue;
use crate::{
    job::{Job, JobId, encode},
    store::{CallError, Change, Due, Updated},
};

/// A change of a waiting, scheduled or parked job that is sent when it is awaited; made by [`Queue::update`].
///
/// # Cancel safety
///
/// Dropping the future before it is done leaves it unknown whether the job was changed; doing it again is harmless.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// queue.update(id).priority(-5).delay(Duration::from_secs(60)).await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent until the update is awaited"]
pub struct Update {
    queue: Queue,
    id: JobId,
    change: Change,
    refusal: Option<UpdateError>,
}

impl fmt::Debug for Update {
    // Not the payload: it may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("id", &self.id).field("due", &self.change.due).finish_non_exhaustive()
    }
}

/// Why a job wasn't changed.
///
/// # Examples
///
/// ```
/// fn is_worth_another_try(error: &emq::UpdateError) -> bool {
///     matches!(error, emq::UpdateError::Call(error) if error.is_transient())
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The payload can't be encoded as JSON.
    #[error("the payload can't be encoded as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The payload is larger than the client allows.
    #[error("the payload has {size} bytes, and the limit is {limit}; store it elsewhere, or raise `max_payload`")]
    TooLarge {
        /// Encoded, in bytes.
        size: usize,
        /// In bytes.
        limit: usize,
    },
    /// The server didn't carry it out, or didn't say so.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Update {
    /// Gives the job another payload. It stands under the name it has, so `job` is to be of the same type.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
    /// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// queue.update(id).payload(&SendEmailJob { to: "grace@example.org".into() }).await?;
    /// # Ok(()) }
    /// ```
    pub fn payload<J: Job>(mut self, job: &J) -> Self {
        let limit = self.queue.client.max_payload();
        match encode(job) {
            Ok(payload) if payload.len() > limit => {
                self.refusal = Some(UpdateError::TooLarge { size: payload.len(), limit });
            }
            Ok(payload) => self.change.payload = Some(payload),
            Err(error) => self.refusal = Some(error.into()),
        }
        self
    }

    /// Gives the job another priority; the lower runs first. Within it, it stands where its id does.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// queue.update(id).priority(-5).await?;
    /// # Ok(()) }
    /// ```
    pub fn priority(mut self, priority: i32) -> Self {
        self.change.priority = Some(priority);
        self
    }

    /// Runs it after `delay` from now, by the server's clock; also a job that could run now. Rounded up to whole ms.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// queue.update(id).delay(std::time::Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub fn delay(mut self, delay: Duration) -> Self {
        self.change.due = Some(Due::In(delay));
        self
    }

    /// Runs it at `time`, by the server's clock; now if that has passed.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// use std::time::{Duration, SystemTime};
    ///
    /// queue.update(id).at(SystemTime::now() + Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub fn at(mut self, time: SystemTime) -> Self {
        self.change.due = Some(Due::At(time));
        self
    }

    /// Runs it now: it goes to its waiting place, and an idle worker wakes.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// queue.update(id).now().await?;
    /// # Ok(()) }
    /// ```
    pub fn now(mut self) -> Self {
        self.change.due = Some(Due::Now);
        self
    }
}

impl IntoFuture for Update {
    type Output = Result<Updated, UpdateError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.refusal {
                Some(refusal) => Err(refusal),
                None => Ok(self.queue.store.update(self.id, self.change).await?),
            }
        })
    }
}

impl Queue {
    /// Changes a job that waits, is scheduled or is parked: its payload, its priority, its time. One that a worker holds
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// Awaited, it answers [`UpdateError`] if the payload can't be sent, or the server didn't say that the job is changed.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::UpdateError> {
    /// queue.update(id).priority(-5).await?;
    /// # Ok(()) }
    /// ```
    pub fn update(&self, id: JobId) -> Update {
        Update { queue: self.clone(), id, change: Change::default(), refusal: None }
    }

    /// Runs a scheduled job now; one that waits stays where it is.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// queue.run_now(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run_now(&self, id: JobId) -> Result<Updated, CallError> {
        self.store.update(id, Change { due: Some(Due::Now), ..Change::default() }).await
    }
}
