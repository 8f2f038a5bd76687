use std::{fmt, future::IntoFuture, pin::Pin, time::Duration};

use super::{Recurrence, RecurringError, ScheduleError};
use crate::{
    client::{Client, Draft},
    job::{Job, LaneName},
    store::{Definition, Store, Upserted},
};

/// A registration of a recurring job, which is sent when it is awaited.
///
/// # Cancel safety
///
/// Dropping the future before it is done leaves it unknown whether the job was registered; doing it again is harmless.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct ReportJob { of: String }
/// # impl emq::Job for ReportJob { const NAME: &'static str = "report"; }
/// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
/// use std::time::Duration;
/// use emq::{Missed, Recurrence, Schedule};
///
/// let hourly = Recurrence::new(Schedule::every(Duration::from_secs(3_600))).missed(Missed::Once);
/// let job = ReportJob { of: "sales".into() };
/// queue.recurring().upsert("sales-report", hourly, job).priority(5).max_attempts(3).await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent until the registration is awaited"]
pub struct Upsert<J> {
    client: Client,
    store: Store,
    name: String,
    recurrence: Recurrence,
    draft: Draft<J>,
}

impl<J> fmt::Debug for Upsert<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upsert")
            .field("name", &self.name)
            .field("recurrence", &self.recurrence)
            .field("draft", &self.draft)
            .finish_non_exhaustive()
    }
}

impl<J: Job> Upsert<J> {
    pub(super) fn new(client: Client, store: Store, name: String, recurrence: Recurrence, job: J) -> Self {
        Self { client, store, name, recurrence, draft: Draft::of(job) }
    }

    /// The priority of each of its jobs; see [`Draft::priority`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(upsert: emq::Upsert<PingJob>) -> Result<(), emq::RecurringError> {
    /// upsert.priority(-10).await?;
    /// # Ok(()) }
    /// ```
    pub fn priority(mut self, priority: i32) -> Self {
        self.draft = self.draft.priority(priority);
        self
    }

    /// The lane of its jobs; see [`Draft::group`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(upsert: emq::Upsert<PingJob>) -> Result<(), emq::RecurringError> {
    /// upsert.group("tenant-7").await?;
    /// # Ok(()) }
    /// ```
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.draft = self.draft.group(group);
        self
    }

    /// After how many failures each of its jobs is buried; see [`Draft::max_attempts`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(upsert: emq::Upsert<PingJob>) -> Result<(), emq::RecurringError> {
    /// upsert.max_attempts(1).await?;
    /// # Ok(()) }
    /// ```
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.draft = self.draft.max_attempts(max_attempts);
        self
    }

    /// Buries a job that hasn't begun within `wait` of its enqueue; see [`Draft::expires_in`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(upsert: emq::Upsert<PingJob>) -> Result<(), emq::RecurringError> {
    /// upsert.expires_in(std::time::Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub fn expires_in(mut self, wait: Duration) -> Self {
        self.draft = self.draft.expires_in(wait);
        self
    }

    /// Sends a header along with each of its jobs; see [`Draft::header`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(upsert: emq::Upsert<PingJob>) -> Result<(), emq::RecurringError> {
    /// upsert.header("tenant", "north").await?;
    /// # Ok(()) }
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft = self.draft.header(name, value);
        self
    }

    async fn send(self) -> Result<Upserted, RecurringError> {
        let template = self.draft.template(&self.client)?;
        let definition = Definition { recurrence: self.recurrence, declared: false, template };
        register(&self.store, &self.name, &definition, How::Anyway).await
    }
}

impl<J: Job> IntoFuture for Upsert<J> {
    type Output = Result<Upserted, RecurringError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Whether what is registered already is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Anyway,
    IfMissing,
}

/// Registers a recurring job, or changes it. A new schedule begins after the server's now, and after the last slot that
/// ran: on a clock that went back, a slot doesn't come twice.
pub(crate) async fn register(
    store: &Store,
    name: &str,
    definition: &Definition,
    how: How,
) -> Result<Upserted, RecurringError> {
    LaneName::new(name)?;
    let schedule = &definition.recurrence.schedule;
    schedule.slots(0)?;
    let (now, known) = store.read_recurring(name).await?;
    if known.is_some() && how == How::IfMissing {
        return Ok(Upserted::Unchanged);
    }
    let last = known.and_then(|record| record.last).unwrap_or(now);
    let first = schedule.slots(now)?.next_after(last.max(now));
    let first = first.ok_or_else(|| ScheduleError::Unknown { text: schedule.to_string() })?;
    Ok(store.upsert_recurring(name, definition, now, first).await?)
}
