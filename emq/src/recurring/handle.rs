use std::time::SystemTime;

use super::{Missed, Overlap, Recurrence, RecurringError, Schedule, Upsert, system_time};
use crate::{
    client::{Client, MAX_MINTS},
    job::{Job, JobId, LaneName},
    store::{Fired, Record, Run, Store, Turn},
};

/// The recurring jobs of a queue.
///
/// They stand on the server, and whichever worker of the queue is there runs their slots, by the server's clock. Each slot
/// gets one job, however many workers there are. docs/scheduling.md has the rules.
///
/// # Cancel safety
///
/// Dropping the future of any method leaves it unknown whether it was carried out; doing it again is harmless, but for
/// [`run_now`](Self::run_now).
///
/// # Clone
///
/// A clone is cheap and stands for the same.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct ReportJob { of: String }
/// # impl emq::Job for ReportJob { const NAME: &'static str = "report"; }
/// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use emq::Schedule;
///
/// let recurring = client.queue("reports")?.recurring();
/// let workdays = Schedule::cron("0 9 * * MON-FRI").in_zone("Europe/Berlin");
/// recurring.upsert("sales-report", workdays, ReportJob { of: "sales".into() }).await?;
/// recurring.pause("sales-report").await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Recurring {
    client: Client,
    store: Store,
}

/// A recurring job, as it stands on the server.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
/// if let Some(job) = queue.recurring().get("sales-report").await? {
///     println!("last at {:?}, next at {:?}", job.last, job.next);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecurringJob {
    /// Its name.
    pub name: String,
    /// The name of the job that it runs.
    pub job: Option<String>,
    /// When it runs; `None` if another version wrote a schedule that this one can't read.
    pub schedule: Option<Schedule>,
    /// Its next slot, by the server's clock; `None` while it is paused.
    pub next: Option<SystemTime>,
    /// The last slot that got a job.
    pub last: Option<SystemTime>,
    /// That job.
    pub last_job: Option<JobId>,
    /// What becomes of slots at which no worker was there.
    pub missed: Missed,
    /// What becomes of a slot whose predecessor's job hasn't ended.
    pub overlap: Overlap,
    /// The priority of its jobs.
    pub priority: i32,
    /// The lane of its jobs.
    pub group: Option<String>,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether a job's type says that it recurs, so that only workers that register this type run it.
    pub declared: bool,
}

impl RecurringJob {
    fn of(name: String, record: Record) -> Self {
        Self {
            name,
            job: record.job_name,
            schedule: record.schedule.and_then(|schedule| schedule.parse().ok()),
            next: record.next.filter(|_| !record.paused).map(system_time),
            last: record.last.map(system_time),
            last_job: record.job,
            missed: record.missed,
            overlap: record.overlap,
            priority: record.priority,
            group: record.group,
            paused: record.paused,
            declared: record.declared,
        }
    }
}

impl Recurring {
    pub(crate) fn new(client: Client, store: Store) -> Self {
        Self { client, store }
    }

    /// Registers a recurring job under a name, or changes what is registered there: await it as it is, or say more first.
    /// The same again changes nothing. With another job or other options, but the same schedule, its next slot stays; a
    /// schedule that is another begins anew. It stays paused if it was.
    ///
    /// A name is 1 to 128 of `A-Z a-z 0-9 . _ -`. Each slot's job has a deduplication key of the name and the slot,
    /// instead of its type's.
    ///
    /// # Errors
    ///
    /// Awaited, it answers [`RecurringError`] if the name, the schedule or the job can't be one, or the server didn't say
    /// that it took it.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// use std::time::Duration;
    /// use emq::Schedule;
    ///
    /// queue.recurring().upsert("ping", Schedule::every(Duration::from_secs(60)), PingJob {}).await?;
    /// # Ok(()) }
    /// ```
    pub fn upsert<J: Job>(&self, name: impl Into<String>, recurrence: impl Into<Recurrence>, job: J) -> Upsert<J> {
        Upsert::new(self.client.clone(), self.store.clone(), name.into(), recurrence.into(), job)
    }

    /// What is registered under a name; `None` if nothing is.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the name can't be one or the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// assert!(queue.recurring().get("sales-report").await?.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, name: &str) -> Result<Option<RecurringJob>, RecurringError> {
        LaneName::new(name)?;
        let (_, record) = self.store.read_recurring(name).await?;
        Ok(record.map(|record| RecurringJob::of(name.to_owned(), record)))
    }

    /// Up to `count` (at most 1 000) recurring jobs, after the first `offset`, in the order of their next slots; those that
    /// are paused come last.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// let first_ten = queue.recurring().list(0, 10).await?;
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, offset: u64, count: usize) -> Result<Vec<RecurringJob>, RecurringError> {
        let listed = self.store.list_recurring(offset, count).await?;
        Ok(listed.into_iter().map(|(name, record)| RecurringJob::of(name, record)).collect())
    }

    /// Lets the slots of a recurring job pass until it is resumed; `false` if there is none of this name. Jobs that it has
    /// already got run on.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the name can't be one or the server didn't say that it did so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// queue.recurring().pause("sales-report").await?;
    /// # Ok(()) }
    /// ```
    pub async fn pause(&self, name: &str) -> Result<bool, RecurringError> {
        LaneName::new(name)?;
        Ok(self.store.pause_recurring(name).await?)
    }

    /// Lets a paused recurring job go on with the next slot to come; `false` if there is none of this name. The slots that
    /// have passed meanwhile weren't missed: none of them runs.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the name can't be one, this program can't read the schedule, or the server didn't say that it
    /// did so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// queue.recurring().resume("sales-report").await?;
    /// # Ok(()) }
    /// ```
    pub async fn resume(&self, name: &str) -> Result<bool, RecurringError> {
        LaneName::new(name)?;
        loop {
            let (now, record) = self.store.read_recurring(name).await?;
            let Some((record, text)) = record.and_then(|mut record| record.schedule.take().map(|text| (record, text)))
            else {
                return Ok(false);
            };
            let slots = text.parse::<Schedule>()?.slots(record.start.unwrap_or(now))?;
            let next = slots.next_after(record.last.unwrap_or(now).max(now)).unwrap_or(i64::MAX / 4);
            if let Some(resumed) = self.store.resume_recurring(name, &text, next).await? {
                return Ok(resumed);
            }
            // Somebody gave it another schedule in this moment.
        }
    }

    /// Forgets a recurring job; `false` if there is none of this name. Jobs that it has already got run on. One that a
    /// job's type declares comes back with the next worker that registers this type: pause it instead.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the name can't be one or the server didn't say that it did so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// queue.recurring().remove("sales-report").await?;
    /// # Ok(()) }
    /// ```
    pub async fn remove(&self, name: &str) -> Result<bool, RecurringError> {
        LaneName::new(name)?;
        Ok(self.store.remove_recurring(name, None).await?)
    }

    /// Enqueues its job once beside its slots, also while it is paused, and whether or not the last one has ended; answers
    /// the job's id, or `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`RecurringError`] if the name can't be one or the server didn't say that it did so; then it may have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the job was enqueued.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
    /// if let Some(id) = queue.recurring().run_now("sales-report").await? {
    ///     println!("enqueued as {id}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn run_now(&self, name: &str) -> Result<Option<JobId>, RecurringError> {
        LaneName::new(name)?;
        let mut id = self.client.mint();
        for _ in 0..MAX_MINTS {
            let (_, nonce) = self.client.node().identity();
            let runs = vec![Run { id, slot: None }];
            let turn = Turn { name: name.to_owned(), stands_at: None, next: None, runs };
            match self.store.fire(nonce, &[turn]).await?.first() {
                Some(Fired::Enqueued(_)) => return Ok(Some(id)),
                // The first try was carried out, and only its reply was lost.
                Some(Fired::Taken { nonce: theirs, repeated: true })
                    if theirs.is_none() || theirs.as_deref() == nonce =>
                {
                    return Ok(Some(id));
                }
                Some(Fired::Taken { .. }) => id = self.client.mint(),
                _ => return Ok(None),
            }
        }
        Err(crate::EnqueueError::Conflict { id }.into())
    }
}
