use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, script},
};

pub(super) static SCRIPT: Script<9, 0> = script!("counts", uses "guard");

/// How many jobs stand in each place of a queue.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let counts = queue.counts().await?;
/// println!("{} to do, {} done, {} dead", counts.unfinished(), counts.completed, counts.dead);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Wait to be claimed, in the flat line and in lanes. What another implementation has put into a lane counts from when
    /// a job of that lane is next moved by this one.
    pub pending: u64,
    /// Held by workers.
    pub active: u64,
    /// Delayed, or waiting for a retry.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// Finished and still remembered.
    pub remembered: u64,
    /// How many jobs were ever completed.
    pub completed: u64,
    /// How many jobs were ever buried.
    pub failed: u64,
    /// Whether the queue is paused.
    pub paused: bool,
    /// In how many lanes jobs wait.
    pub lanes: u64,
    /// Wait until the job has ended that holds their deduplication key.
    pub parked: u64,
}

impl Counts {
    /// How many jobs haven't ended: pending, active, scheduled and parked.
    ///
    /// ```
    /// assert_eq!(emq::Counts::default().unfinished(), 0);
    /// ```
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.pending.saturating_add(self.active).saturating_add(self.scheduled).saturating_add(self.parked)
    }
}

impl Store {
    pub(crate) async fn counts(&self) -> Result<Counts, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.pending.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.done.clone(),
                keys.completed.clone(),
                keys.failed.clone(),
                keys.meta.clone(),
                keys.root.clone(),
            ],
            [],
        );
        Counts::read(self.connection.call(call).await?.value)
    }
}

impl Counts {
    pub(super) fn read(value: Value) -> Result<Self, CallError> {
        let mut reply = Reply::list("counts", value)?;
        Ok(Self {
            pending: reply.count()?,
            active: reply.count()?,
            scheduled: reply.count()?,
            dead: reply.count()?,
            remembered: reply.count()?,
            completed: reply.count()?,
            failed: reply.count()?,
            paused: reply.integer()? == 1,
            lanes: reply.count()?,
            parked: reply.count()?,
        })
    }
}
