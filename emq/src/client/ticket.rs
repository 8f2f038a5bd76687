use std::{
    fmt,
    marker::PhantomData,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::de::DeserializeOwned;

use super::enqueue::Entered;
use crate::{
    job::{JobId, Returns},
    queue::{Queue, UpdateError, WaitError},
    store::{CallError, Cancelled, Updated},
};

/// The answer to an enqueue: the job's id, whether it is new, and a hand on it.
///
/// `J` is the job's type, by which [`wait`](Self::wait) knows the type of the result.
///
/// # Clone
///
/// A clone is cheap and is for the same job.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, job: SendEmailJob) -> Result<(), emq::EnqueueError> {
/// use emq::Admission;
///
/// let ticket = client.enqueue(job).unique("welcome-ada").await?;
/// match ticket.admission() {
///     Admission::Enqueued => println!("{} waits", ticket.id()),
///     Admission::Duplicate(of) => println!("{of} is doing that already"),
///     other => println!("{other:?}"),
/// }
/// # Ok(()) }
/// ```
pub struct Ticket<J = ()> {
    entered: Entered,
    // Shared by the tickets of one call, and small: errors carry tickets, too.
    queue: Arc<Queue>,
    job: PhantomData<fn() -> J>,
}

impl<J> Clone for Ticket<J> {
    fn clone(&self) -> Self {
        Self { entered: self.entered, queue: Arc::clone(&self.queue), job: PhantomData }
    }
}

impl<J> fmt::Debug for Ticket<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("id", &self.id()).field("admission", &self.admission()).finish_non_exhaustive()
    }
}

/// Whether an enqueue made a new job.
///
/// # Examples
///
/// ```no_run
/// # fn example(ticket: emq::Ticket) {
/// use emq::Admission;
///
/// let is_new = ticket.admission() == Admission::Enqueued;
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// The job was new, and is in the queue now: pending, or scheduled if it was given a time.
    Enqueued,
    /// Nothing was added: this job has the same id, or holds the same deduplication key. It may have ended, where the key
    /// outlives it.
    Duplicate(JobId),
    /// Nothing was added: this job, which has the same deduplication key and waits, does now what the new one was to do. See
    /// [`Unique::replace_payload`](crate::Unique::replace_payload).
    Replaced(JobId),
    /// The job was new, and waits until this one has ended, which runs and holds its deduplication key. See
    /// [`Unique::then_once`](crate::Unique::then_once).
    Parked(JobId),
}

impl<J> Ticket<J> {
    pub(super) fn new(entered: Entered, queue: Arc<Queue>) -> Self {
        Self { entered, queue, job: PhantomData }
    }

    /// The id of the job that does the work: the new one's, or the one that this is a duplicate of or was merged into.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// println!("{}", ticket.id());
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> JobId {
        match self.admission() {
            Admission::Enqueued | Admission::Parked(_) => self.entered.id,
            Admission::Duplicate(of) | Admission::Replaced(of) => of,
        }
    }

    /// Whether the job is new.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// if let emq::Admission::Duplicate(of) = ticket.admission() {
    ///     println!("{of} is doing that already");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.entered.outcome
    }

    /// Whether nothing was written: the job is there already, or another holds its key.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// assert!(!ticket.is_duplicate());
    /// # }
    /// ```
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.admission(), Admission::Duplicate(_))
    }

    /// The queue that the job is in.
    ///
    /// ```no_run
    /// # async fn example(ticket: emq::Ticket) -> Result<(), emq::CallError> {
    /// let job = ticket.queue().get(ticket.id()).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Waits until the job has ended, and answers its result; as [`Queue::wait`].
    ///
    /// # Errors
    ///
    /// [`WaitError`] if it ended in another way than done, its result can't be had, or the server can't be asked.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the result can be waited for again.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let ticket = client.enqueue(EnrollJob { student: 7 }).await?;
    /// let seat: u64 = ticket.wait().await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait(&self) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.queue.wait::<J>(self.id()).await
    }

    /// As [`wait`](Self::wait), but for so long at most.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait); and [`WaitError::TimedOut`] if the job hasn't ended by then.
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(ticket: emq::Ticket<EnrollJob>) {
    /// use std::time::Duration;
    /// use emq::WaitError;
    ///
    /// match ticket.wait_for(Duration::from_secs(5)).await {
    ///     Ok(seat) => println!("seat {seat}"),
    ///     Err(WaitError::TimedOut { .. }) => println!("still at it"),
    ///     Err(error) => println!("{error}"),
    /// }
    /// # }
    /// ```
    pub async fn wait_for(&self, timeout: Duration) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.queue.wait_for::<J>(self.id(), timeout).await
    }

    /// Cancels the job; as [`Queue::cancel`].
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the job was cancelled; doing it again is harmless.
    ///
    /// ```no_run
    /// # async fn example(ticket: emq::Ticket) -> Result<(), emq::CallError> {
    /// ticket.cancel().await?;
    /// # Ok(()) }
    /// ```
    pub async fn cancel(&self) -> Result<Cancelled, CallError> {
        self.queue.cancel(self.id()).await
    }

    /// Runs a job that waits or is scheduled after `delay` from now; as [`Queue::update`].
    ///
    /// # Errors
    ///
    /// As [`Queue::update`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the job was changed; doing it again is harmless.
    ///
    /// ```no_run
    /// # async fn example(ticket: emq::Ticket) -> Result<(), emq::UpdateError> {
    /// ticket.reschedule(std::time::Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reschedule(&self, delay: Duration) -> Result<Updated, UpdateError> {
        self.queue.update(self.id()).delay(delay).await
    }

    /// As [`reschedule`](Self::reschedule), to a point in time by the server's clock.
    ///
    /// # Errors
    ///
    /// As [`Queue::update`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the job was changed; doing it again is harmless.
    ///
    /// ```no_run
    /// # async fn example(ticket: emq::Ticket) -> Result<(), emq::UpdateError> {
    /// use std::time::{Duration, SystemTime};
    ///
    /// ticket.reschedule_at(SystemTime::now() + Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reschedule_at(&self, time: SystemTime) -> Result<Updated, UpdateError> {
        self.queue.update(self.id()).at(time).await
    }

    /// Runs a scheduled job now; as [`Queue::run_now`].
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the job was changed; doing it again is harmless.
    ///
    /// ```no_run
    /// # async fn example(ticket: emq::Ticket) -> Result<(), emq::CallError> {
    /// ticket.run_now().await?;
    /// # Ok(()) }
    /// ```
    pub async fn run_now(&self) -> Result<Updated, CallError> {
        self.queue.run_now(self.id()).await
    }

    /// The same ticket for a job of the type `K`: where the type got lost, as in an
    /// [`EnqueueManyError`](crate::EnqueueManyError).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # fn example(ticket: emq::Ticket) {
    /// let ticket: emq::Ticket<PingJob> = ticket.typed();
    /// # }
    /// ```
    #[must_use]
    pub fn typed<K>(self) -> Ticket<K> {
        Ticket { entered: self.entered, queue: self.queue, job: PhantomData }
    }
}
