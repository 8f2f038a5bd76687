//! What is done with one job: in the partition that has it.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::Partitioned;
use crate::{
    job::{JobId, Returns},
    queue::{JobResult, ResultError, WaitError},
    store::{CallError, Cancelled, JobState, Removed, Revived, Stored},
};

impl Partitioned {
    /// Where a job stands; `None` if no partition knows it.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned, id: emq::JobId) -> Result<(), emq::CallError> {
    /// assert_eq!(mail.state(id).await?, Some(emq::JobState::Pending));
    /// # Ok(()) }
    /// ```
    pub async fn state(&self, id: JobId) -> Result<Option<JobState>, CallError> {
        self.look(id, |queue| async move { queue.state(id).await }).await
    }

    /// Everything that is stored of a job; `None` if no partition knows it.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned, id: emq::JobId) -> Result<(), emq::CallError> {
    /// let job = mail.get(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, id: JobId) -> Result<Option<Stored>, CallError> {
        self.look(id, |queue| async move { queue.get(id).await }).await
    }

    /// What became of a job, as far as it is known; as [`Queue::result`](crate::Queue::result).
    ///
    /// # Errors
    ///
    /// As [`Queue::result`](crate::Queue::result).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(enrollments: emq::Partitioned, id: emq::JobId) -> Result<(), emq::ResultError> {
    /// if let emq::JobResult::Done(seat) = enrollments.result::<EnrollJob>(id).await? {
    ///     println!("seat {seat}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn result<J>(&self, id: JobId) -> Result<JobResult<J::Output>, ResultError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.holder(id).await?.result::<J>(id).await
    }

    /// Waits until a job has ended, and answers its result; as [`Queue::wait`](crate::Queue::wait). A
    /// [`Ticket`](crate::Ticket) knows the partition, and needn't look for it.
    ///
    /// # Errors
    ///
    /// As [`Queue::wait`](crate::Queue::wait).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(enrollments: emq::Partitioned, id: emq::JobId) -> Result<(), emq::WaitError> {
    /// let seat = enrollments.wait::<EnrollJob>(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait<J>(&self, id: JobId) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.holder(id).await?.wait::<J>(id).await
    }

    /// As [`wait`](Self::wait), but for so long at most, counted from when the job was found.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait); and [`WaitError::TimedOut`] if the job hasn't ended by then.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(enrollments: emq::Partitioned, id: emq::JobId) -> Result<(), emq::WaitError> {
    /// let seat = enrollments.wait_for::<EnrollJob>(id, std::time::Duration::from_secs(5)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_for<J>(&self, id: JobId, timeout: Duration) -> Result<J::Output, WaitError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        self.holder(id).await?.wait_for::<J>(id, timeout).await
    }

    /// Cancels a job; as [`Queue::cancel`](crate::Queue::cancel).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned, id: emq::JobId) -> Result<(), emq::CallError> {
    /// mail.cancel(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn cancel(&self, id: JobId) -> Result<Cancelled, CallError> {
        self.holder(id).await?.cancel(id).await
    }

    /// Brings a dead letter back to where it can be claimed; as [`Queue::revive`](crate::Queue::revive).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// for letter in mail.list(emq::Place::Dead, 0, 100).await? {
    ///     mail.revive(letter.id).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn revive(&self, id: JobId) -> Result<Revived, CallError> {
        self.holder(id).await?.revive(id).await
    }

    /// Deletes a job that no worker holds; as [`Queue::remove`](crate::Queue::remove).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned, id: emq::JobId) -> Result<(), emq::CallError> {
    /// mail.remove(id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn remove(&self, id: JobId) -> Result<Removed, CallError> {
        self.holder(id).await?.remove(id).await
    }
}
