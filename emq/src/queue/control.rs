//! A hand on a running queue: pause, limits, lanes.

use super::{Lane, Queue};
use crate::{
    job::{JobId, NameError},
    store::{CallError, Limits, ListedLane, Rate, Reassigned, Setting},
};

impl Queue {
    /// Lets nothing more be claimed. When it has returned, no claim of any worker takes a job, also not that of one which
    /// was waiting for work. What had been claimed before runs on, and everything else goes on as well: enqueues, retries,
    /// recovery of jobs whose worker died.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// queue.pause().await?;
    /// while queue.counts().await?.active > 0 {
    ///     tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn pause(&self) -> Result<(), CallError> {
        self.store.pause(None).await
    }

    /// Lets the queue go on after a [`pause`](Self::pause), and ends a [`hold`](Self::hold) of it. A waiting worker wakes.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// queue.resume().await?;
    /// # Ok(()) }
    /// ```
    pub async fn resume(&self) -> Result<(), CallError> {
        self.store.resume(None).await
    }

    /// How many jobs of this queue may be active at a time, over all workers; any number by default, and none with
    /// `Some(0)`. A lower limit stops no run: nothing more starts until enough have ended.
    ///
    /// A job whose worker died counts until it is recovered.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// queue.set_concurrency(20).await?;
    /// queue.set_concurrency(None).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_concurrency(&self, limit: impl Into<Option<u32>>) -> Result<(), CallError> {
        self.store.tune(None, Setting::Concurrency(limit.into())).await
    }

    /// How many jobs of this queue may start in some time, over all workers; any number by default. A job starts when it
    /// is claimed, so a retry counts again. Setting the same rate again changes nothing of what is spent, and no rate ends a
    /// [`hold`](Self::hold) of the queue.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    /// use emq::Rate;
    ///
    /// queue.set_rate(Rate::per(50, Duration::from_secs(1)).burst(10)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_rate(&self, rate: impl Into<Option<Rate>>) -> Result<(), CallError> {
        self.store.tune(None, Setting::Rate(rate.into())).await
    }

    /// What the queue as a whole may do: what was set by [`set_concurrency`](Self::set_concurrency) and
    /// [`set_rate`](Self::set_rate), and until when it is held back. Of a lane, [`Lane::state`] says it; whether the queue is
    /// paused, [`counts`](Self::counts).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// if let Some(limit) = queue.limits().await?.concurrency {
    ///     queue.set_concurrency(limit + 5).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn limits(&self) -> Result<Limits, CallError> {
        self.store.limits().await
    }

    /// One lane of this queue: that of the jobs enqueued with [`group`](crate::Draft::group) of this name. It needn't
    /// exist: a lane comes and goes with its jobs, and its settings stay.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name can't be a lane's.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), Box<dyn std::error::Error>> {
    /// queue.lane("tenant-7")?.set_concurrency(2).await?;
    /// # Ok(()) }
    /// ```
    pub fn lane(&self, name: impl AsRef<str>) -> Result<Lane, NameError> {
        Lane::new(self.store.clone(), name.as_ref())
    }

    /// Up to `count` (at most 1 000) lanes in which jobs wait, after the first `offset`; that with the most in front.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// for lane in queue.lanes(0, 20).await? {
    ///     println!("{:6} {}", lane.waiting, lane.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lanes(&self, offset: u64, count: usize) -> Result<Vec<ListedLane>, CallError> {
        self.store.list_lanes(offset, count).await
    }

    /// Puts a job that no worker holds into another lane, `None` for the flat line. It keeps its priority and its age.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
    /// let slow = queue.lane("slow")?;
    /// queue.reassign(id, Some(&slow)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reassign(&self, id: JobId, lane: Option<&Lane>) -> Result<Reassigned, CallError> {
        self.store.reassign(id, lane.map(Lane::lane_name)).await
    }
}
