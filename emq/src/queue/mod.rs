//! A queue's transitions, one by one.

mod claimer;
mod control;
mod events;
mod lane;
mod purge;
mod result;
mod update;

use std::time::Duration;

pub use self::{
    claimer::{Claimer, DEFAULT_LEASE},
    events::{Event, Events},
    lane::Lane,
    purge::{Purge, PurgeError, Purged},
    result::{JobResult, ResultError, WaitError},
    update::{Update, UpdateError},
};
use crate::{
    client::IntoDraft,
    job::{Completion, DEFAULT_RETENTION, Job, JobId, QueueName},
    recurring::Recurring,
    store::{
        CallError, Cancelled, Counts, Done, Extend, Extended, JobState, Keep, Lease, Listed, MAX_BATCH, Place,
        Promoted, Reaped, Removed, Revived, Settled, Store, Stored, Trimmed,
    },
};

/// At which stall a job is buried, unless set: the third.
pub const DEFAULT_MAX_STALLED: u32 = 3;

/// One queue: each transition by itself, to look into it, to repair it, or to write a worker of your own.
///
/// Made by [`Client::queue`](crate::Client::queue). Every transition is one script that moves a job from one place to the
/// next, or does nothing and says why.
///
/// # Cancel safety
///
/// Dropping the future of any method leaves it unknown whether the transition was carried out; doing it again is
/// harmless.
///
/// # Clone
///
/// A clone is cheap and is the same queue.
///
/// # Examples
///
/// A worker's loop, without the worker:
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
/// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
/// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use emq::Completion;
///
/// let queue = client.queue("default")?;
/// let mut claimer = queue.claimer("my-loop");
/// loop {
///     queue.reap(Some(3)).await?;
///     queue.promote().await?;
///     let batch = claimer.claim(10).await?;
///     for job in &batch.jobs {
///         match job.decode::<PingJob>() {
///             Ok(PingJob {}) => queue.complete(&job.lease, Completion::empty()).await?,
///             Err(error) => queue.bury(&job.lease, &error.to_string()).await?,
///         };
///     }
///     if !batch.more {
///         tokio::time::sleep(Duration::from_millis(500)).await;
///     }
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    store: Store,
    client: crate::Client,
}

impl Queue {
    pub(crate) fn new(client: crate::Client, store: Store) -> Self {
        Self { store, client }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Its name.
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// println!("{}", queue.name());
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &QueueName {
        self.store.name()
    }

    /// Enqueues a job into this queue, whatever its type says; see [`Client::enqueue`](crate::Client::enqueue).
    ///
    /// # Errors
    ///
    /// Awaited, as [`Client::enqueue`](crate::Client::enqueue).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::EnqueueError> {
    /// let ticket = queue.enqueue(PingJob {}).await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue<J: Job>(&self, job: J) -> crate::Enqueue<J> {
        self.client.enqueue(job).queue(self.name().as_str())
    }

    /// Enqueues many jobs into this queue, whatever their types and drafts say; see
    /// [`Client::enqueue_many`](crate::Client::enqueue_many).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::EnqueueManyError> {
    /// let tickets = queue.enqueue_many((0..100).map(|_| PingJob {})).await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue_many<D: IntoDraft>(&self, jobs: impl IntoIterator<Item = D>) -> crate::EnqueueMany<D::Job> {
        let queue = self.name().as_str();
        self.client.enqueue_many(jobs.into_iter().map(|job| job.into_draft().queue(queue)))
    }

    /// Its recurring jobs: to register, look at, pause and remove them.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// for job in queue.recurring().list(0, 100).await? {
    ///     println!("{} runs next at {:?}", job.name, job.next);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn recurring(&self) -> Recurring {
        Recurring::new(self.client.clone(), self.store.clone())
    }

    /// Something that claims jobs under the name of a worker.
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// let claimer = queue.claimer("nightly-import");
    /// # }
    /// ```
    pub fn claimer(&self, worker: impl AsRef<str>) -> Claimer {
        Claimer::new(self.store.clone(), worker.as_ref())
    }

    /// Ends a claimed job as done. Its id is remembered, and its result kept, for 1 hour; see
    /// [`complete_for`](Self::complete_for).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so; the lease runs on meanwhile.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// let settled = queue.complete(&job.lease, emq::Completion::empty()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn complete(&self, lease: &Lease, completion: Completion) -> Result<Settled, CallError> {
        self.complete_for(lease, completion, DEFAULT_RETENTION).await
    }

    /// Ends a claimed job as done, and remembers its id and its result for `retention`, at least
    /// 1 minute.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use emq::Completion;
    ///
    /// queue.complete_for(&job.lease, Completion::empty(), Duration::from_secs(86_400)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn complete_for(
        &self,
        lease: &Lease,
        completion: Completion,
        retention: Duration,
    ) -> Result<Settled, CallError> {
        let done = Done { lease: *lease, retention, result: completion.into_result() };
        self.store.complete(done).await
    }

    /// Puts a failed job on the schedule, to run again after `delay`. The failure is counted and `error` kept.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    ///
    /// queue.retry(&job.lease, Duration::from_secs(5), "the mail server said 451").await?;
    /// # Ok(()) }
    /// ```
    pub async fn retry(&self, lease: &Lease, delay: Duration, error: &str) -> Result<Settled, CallError> {
        self.store.retry(lease, delay, error).await
    }

    /// Makes a claimed job a dead letter, and keeps `error` with it. Its deduplication key is free again.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// queue.bury(&job.lease, "no such student").await?;
    /// # Ok(()) }
    /// ```
    pub async fn bury(&self, lease: &Lease, error: &str) -> Result<Settled, CallError> {
        self.store.bury(lease, error).await
    }

    /// Puts a claimed job on the schedule, to run again after `delay`. No failure is counted.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// queue.snooze(&job.lease, std::time::Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn snooze(&self, lease: &Lease, delay: Duration) -> Result<Settled, CallError> {
        self.store.snooze(lease, delay).await
    }

    /// Gives a claimed job back to its waiting place at once. No failure is counted.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// queue.release(&job.lease).await?;
    /// # Ok(()) }
    /// ```
    pub async fn release(&self, lease: &Lease) -> Result<Settled, CallError> {
        self.store.release(lease).await
    }

    /// Ends a claimed job as cancelled: what a holder does after [`Extended::Cancelled`], when it has dropped the run. Its
    /// id is remembered for 1 hour.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    /// use emq::Extended;
    ///
    /// if queue.extend(&[job.lease], Duration::from_secs(30)).await? == [Extended::Cancelled] {
    ///     queue.cancel_held(&job.lease).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn cancel_held(&self, lease: &Lease) -> Result<Settled, CallError> {
        self.store.cancel_held(lease, DEFAULT_RETENTION).await
    }

    /// Gives a claimed job back to its waiting place, and lets nothing more of its lane start for `delay`; of the whole queue,
    /// if it has no lane. No failure is counted. It is for a third party that says that the caller comes too often: who has
    /// the same limit waits with the job, and who hasn't goes on.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
    /// // 429 Too Many Requests, Retry-After: 30
    /// queue.hold(&job.lease, std::time::Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn hold(&self, lease: &Lease, delay: Duration) -> Result<Settled, CallError> {
        self.store.hold(lease, delay).await
    }

    /// Renews leases for another `term` from now, and says of each whether it is still held; any number, at most 1 000
    /// in one call of the server.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, jobs: Vec<emq::Claimed>) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    ///
    /// let leases: Vec<_> = jobs.iter().map(|job| job.lease).collect();
    /// let extended = queue.extend(&leases, Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn extend(&self, leases: &[Lease], term: Duration) -> Result<Vec<Extended>, CallError> {
        let mut extended = Vec::with_capacity(leases.len());
        for leases in leases.chunks(MAX_BATCH) {
            let leases: Vec<_> = leases.iter().map(|lease| Extend { lease: *lease, term }).collect();
            extended.extend(self.store.extend(&leases).await?);
        }
        Ok(extended)
    }

    /// Moves up to 1 000 scheduled jobs that are due to where they can be claimed.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// println!("{} jobs fell due", queue.promote().await?.count);
    /// # Ok(()) }
    /// ```
    pub async fn promote(&self) -> Result<Promoted, CallError> {
        self.store.promote(MAX_BATCH).await
    }

    /// Takes up to 1 000 jobs whose lease ran out away from their workers: back to where they can be claimed, or to the
    /// dead letters at the `max_stalled`-th time (`None` = never).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// let reaped = queue.reap(Some(3)).await?;
    /// println!("{} jobs recovered, {} buried", reaped.recovered.len(), reaped.dead.len());
    /// # Ok(()) }
    /// ```
    pub async fn reap(&self, max_stalled: Option<u32>) -> Result<Reaped, CallError> {
        self.store.reap(max_stalled, MAX_BATCH).await
    }

    /// Forgets up to 1 000 finished jobs and deletes up to 1 000 dead letters that were kept long enough, and puts right what
    /// another implementation may have left of some lanes.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// while queue.trim(emq::Keep::default()).await?.more {}
    /// # Ok(()) }
    /// ```
    pub async fn trim(&self, keep: Keep) -> Result<Trimmed, CallError> {
        self.store.trim(keep, MAX_BATCH).await
    }

    /// Brings a dead letter back to where it can be claimed, with a fresh budget of attempts and stalls.
    ///
    /// It takes its deduplication key again, if no other job holds it by now.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// for letter in queue.list(emq::Place::Dead, 0, 100).await? {
    ///     queue.revive(letter.id).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn revive(&self, id: JobId) -> Result<Revived, CallError> {
        self.store.revive(id).await
    }

    /// Deletes a job that is pending, scheduled, parked or dead. If it was ever claimed, its id stays taken for an hour: a
    /// worker that still believes in its claim must not settle another job under the same id.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// if queue.remove(id).await? == emq::Removed::Active {
    ///     println!("a worker holds it");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn remove(&self, id: JobId) -> Result<Removed, CallError> {
        self.store.remove(id, DEFAULT_RETENTION).await
    }

    /// Cancels a job. One that is pending, scheduled, parked or dead is gone at once. The worker that holds a running one is
    /// told at once, and again when it renews the lease: it drops the run, and the job ends as cancelled.
    ///
    /// A run that is done before it can be dropped is done. One that blocks its thread can't be dropped: its lease isn't
    /// renewed any more, and when it has run out the job ends as cancelled, though the function may still be running. In no
    /// case does the job run again. The id stays taken for an hour, so that nobody enqueues the job once more.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// if queue.cancel(id).await? == emq::Cancelled::Asked {
    ///     println!("its worker has been told");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn cancel(&self, id: JobId) -> Result<Cancelled, CallError> {
        self.store.cancel(id, DEFAULT_RETENTION).await
    }

    /// How many jobs stand in each place.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// let counts = queue.counts().await?;
    /// println!("{} wait, {} run, {} are dead", counts.pending, counts.active, counts.dead);
    /// # Ok(()) }
    /// ```
    pub async fn counts(&self) -> Result<Counts, CallError> {
        self.store.counts().await
    }

    /// Where a job stands; `None` if there is none of that id.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// assert_eq!(queue.state(id).await?, Some(emq::JobState::Pending));
    /// # Ok(()) }
    /// ```
    pub async fn state(&self, id: JobId) -> Result<Option<JobState>, CallError> {
        self.store.state(id).await
    }

    /// Everything that is stored of a job; `None` if there is none of that id.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// if let Some(job) = queue.get(id).await? {
    ///     println!("failed {} times, the last with {:?}", job.failures, job.last_error);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, id: JobId) -> Result<Option<Stored>, CallError> {
        self.store.get(id).await
    }

    /// What the runs of a job have logged with [`JobContext::log`](crate::JobContext::log), the oldest line first: the newest
    /// 1 000 lines. They go with the job, so there are none when it is done.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
    /// for line in queue.logs(id).await? {
    ///     println!("{line}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn logs(&self, id: JobId) -> Result<Vec<String>, CallError> {
        self.store.logs(id).await
    }

    /// Up to `count` (at most 1 000) jobs of one place, after the first `offset`.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// for letter in queue.list(emq::Place::Dead, 0, 20).await? {
    ///     println!("{}", letter.id);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, place: Place, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        self.store.list(place, offset, count).await
    }
}
