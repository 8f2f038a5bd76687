use std::time::Duration;

use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, millis, number, script},
};
use crate::job::DEFAULT_RETENTION;

pub(super) static SCRIPT: Script<6, 5> = script!("trim", uses "clock", "guard", "waiting", "lanes", "events");

/// After how long the last claim of a worker that hasn't said goodbye is forgotten.
const SILENT: Duration = Duration::from_secs(60 * 60);

/// How long and how many dead letters are kept.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::Keep;
///
/// let keep = Keep::default();
/// assert_eq!((keep.age, keep.count), (Duration::from_secs(90 * 24 * 60 * 60), 10_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How long after its death; 90 days by default.
    pub age: Duration,
    /// How many of a queue, the newest; 10 000 by default.
    pub count: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 24 * 60 * 60), count: 10_000 }
    }
}

/// What a trim did.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let trimmed = queue.trim(emq::Keep::default()).await?;
/// println!("{} dead letters deleted", trimmed.dead);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trimmed {
    /// How many finished jobs were forgotten.
    pub forgotten: u64,
    /// How many dead letters were deleted.
    pub dead: u64,
    /// Whether there is more to trim.
    pub more: bool,
}

impl Store {
    /// Forgets up to `limit` finished jobs and deletes up to `limit` dead letters that have been kept long enough.
    pub(crate) async fn trim(&self, keep: Keep, limit: usize) -> Result<Trimmed, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.rows.clone(),
                keys.done.clone(),
                keys.dead.clone(),
                keys.claims.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [
                number(limit.clamp(1, super::MAX_BATCH) as u64),
                millis(keep.age),
                number(keep.count),
                millis(SILENT),
                millis(DEFAULT_RETENTION),
            ],
        );
        Trimmed::read(self.connection.call(call).await?.value)
    }
}

impl Trimmed {
    pub(super) fn read(value: Value) -> Result<Self, CallError> {
        let mut reply = Reply::list("trim", value)?;
        let more = reply.integer()? == 1;
        Ok(Self { forgotten: reply.count()?, dead: reply.count()?, more })
    }
}
