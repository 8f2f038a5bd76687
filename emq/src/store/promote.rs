use std::time::Duration;

use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<5, 1> =
    script!("promote", uses "clock", "guard", "waiting", "lanes", "unique", "promote");

/// What a promotion did.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let promoted = queue.promote().await?;
/// println!("{} can run now, the next in {:?}", promoted.count, promoted.next_due);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promoted {
    /// How many jobs can be claimed now that were scheduled before.
    pub count: u64,
    /// How long until the next scheduled job is due; zero if more are due now; `None` if none is scheduled.
    pub next_due: Option<Duration>,
    /// How many ids were dropped because they had no row.
    pub dropped: u64,
}

impl Store {
    /// Moves up to `limit` scheduled jobs that are due to their waiting place.
    pub(crate) async fn promote(&self, limit: usize) -> Result<Promoted, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [keys.rows.clone(), keys.schedule.clone(), keys.pending.clone(), keys.marker.clone(), keys.root.clone()],
            [number(limit.clamp(1, super::MAX_BATCH) as u64)],
        );
        Promoted::read(self.connection.call(call).await?.value)
    }
}

impl Promoted {
    pub(super) fn read(value: Value) -> Result<Self, CallError> {
        Self::of(Reply::list("promote", value)?)
    }

    pub(super) fn of(mut reply: Reply) -> Result<Self, CallError> {
        Ok(Self { count: reply.count()?, next_due: reply.wait()?, dropped: reply.count()? })
    }
}
