use crate::{
    job::{DEFAULT_RETENTION, LaneName, NameError},
    store::{CallError, LaneDrained, LaneState, Listed, MAX_BATCH, Rate, Setting, Store},
};

/// One lane of a queue: the line in which the jobs of one group wait, such as those of a tenant.
///
/// Made by [`Queue::lane`](crate::Queue::lane). Lanes are served in turn, the flat line of the jobs without a group as one
/// of them; `docs/fairness.md` has the rules.
///
/// # Cancel safety
///
/// Dropping the future of any method leaves it unknown whether the server carried it out; doing it again is harmless.
///
/// # Clone
///
/// A clone is cheap and is the same lane.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use emq::Rate;
///
/// let tenant = queue.lane("tenant-7")?;
/// tenant.set_weight(3).await?;
/// tenant.set_concurrency(10).await?;
/// tenant.set_rate(Rate::per(600, Duration::from_secs(60))).await?;
/// println!("{:?}", tenant.state().await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Lane {
    store: Store,
    name: LaneName,
}

impl Lane {
    pub(super) fn new(store: Store, name: &str) -> Result<Self, NameError> {
        Ok(Self { store, name: LaneName::new(name)? })
    }

    pub(super) fn lane_name(&self) -> &LaneName {
        &self.name
    }

    /// Its name: the group of its jobs.
    ///
    /// ```no_run
    /// # fn example(lane: emq::Lane) {
    /// println!("{}", lane.name());
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// How many of its jobs wait and run, and what is set of it.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// println!("{} wait", lane.state().await?.waiting);
    /// # Ok(()) }
    /// ```
    pub async fn state(&self) -> Result<LaneState, CallError> {
        self.store.lane(&self.name).await
    }

    /// Up to `count` (at most 1 000) jobs that wait in it, after the first `offset`, in the order in which they will run. The
    /// score is the priority.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// for job in lane.list(0, 20).await? {
    ///     println!("{}", job.id);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        self.store.list_lane(&self.name, offset, count).await
    }

    /// Lets nothing more of it be claimed; the others go on. As [`Queue::pause`](crate::Queue::pause).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// lane.pause().await?;
    /// # Ok(()) }
    /// ```
    pub async fn pause(&self) -> Result<(), CallError> {
        self.store.pause(Some(&self.name)).await
    }

    /// Lets it go on after a [`pause`](Self::pause), and ends a hold of it: it takes its place at the end of the ring. Its
    /// limits stay. It also puts right a ring from which the lane was lost, or in which it stands though it can't be served.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// lane.resume().await?;
    /// # Ok(()) }
    /// ```
    pub async fn resume(&self) -> Result<(), CallError> {
        self.store.resume(Some(&self.name)).await
    }

    /// How many of its jobs may be active at a time, over all workers; any number by default, and none with `Some(0)`. A
    /// lower limit stops no run.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// lane.set_concurrency(2).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_concurrency(&self, limit: impl Into<Option<u32>>) -> Result<(), CallError> {
        self.store.tune(Some(&self.name), Setting::Concurrency(limit.into())).await
    }

    /// How many jobs it has in one turn; 1 by default, and 0 counts as 1. The flat line always has 1.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// lane.set_weight(6).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_weight(&self, weight: u32) -> Result<(), CallError> {
        let weight = (weight > 1).then_some(weight);
        self.store.tune(Some(&self.name), Setting::Weight(weight)).await
    }

    /// How many of its jobs may start in some time, over all workers; any number by default. As
    /// [`Queue::set_rate`](crate::Queue::set_rate).
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    ///
    /// lane.set_rate(emq::Rate::per(600, Duration::from_secs(60))).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_rate(&self, rate: impl Into<Option<Rate>>) -> Result<(), CallError> {
        self.store.tune(Some(&self.name), Setting::Rate(rate.into())).await
    }

    /// Deletes up to 1 000 of its waiting jobs, those that would run first in front: call it until none is left. What
    /// workers hold, what is scheduled and what is dead stays. As after [`remove`](crate::Queue::remove), the id of a job
    /// that was ever claimed stays taken for an hour.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(lane: emq::Lane) -> Result<(), emq::CallError> {
    /// loop {
    ///     let drained = lane.drain().await?;
    ///     println!("{} removed, {} left", drained.removed, drained.left);
    ///     if drained.left == 0 {
    ///         break;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn drain(&self) -> Result<LaneDrained, CallError> {
        self.store.drain_lane(&self.name, MAX_BATCH, DEFAULT_RETENTION).await
    }
}
