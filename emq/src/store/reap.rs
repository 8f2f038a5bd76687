use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<8, 2> =
    script!("reap", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending");

/// What a sweep for expired leases did.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// while queue.reap(Some(3)).await?.more {}
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reaped {
    /// The jobs that wait again.
    pub recovered: Vec<JobId>,
    /// The jobs that stalled once too often and are dead letters now.
    pub dead: Vec<JobId>,
    /// The jobs that are gone, since somebody had cancelled them while they were held.
    pub cancelled: Vec<JobId>,
    /// Whether more have lost their lease.
    pub more: bool,
    /// How many ids were dropped because they had no row.
    pub dropped: u64,
}

impl Store {
    /// Takes up to `limit` jobs whose lease ran out from the active set; `max_stalled` is the stall at which a job is
    /// buried.
    pub(crate) async fn reap(&self, max_stalled: Option<u32>, limit: usize) -> Result<Reaped, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.rows.clone(),
                keys.active.clone(),
                keys.pending.clone(),
                keys.dead.clone(),
                keys.marker.clone(),
                keys.failed.clone(),
                keys.events.clone(),
                keys.root.clone(),
            ],
            [max_stalled.map_or_else(|| "".into(), number), number(limit.clamp(1, super::MAX_BATCH) as u64)],
        );
        Reaped::read(self.connection.call(call).await?.value)
    }
}

impl Reaped {
    pub(super) fn read(value: Value) -> Result<Self, CallError> {
        let mut reply = Reply::list("reap", value)?;
        let more = reply.integer()? == 1;
        let dropped = reply.count()?;
        Ok(Self { recovered: reply.ids()?, dead: reply.ids()?, cancelled: reply.ids()?, more, dropped })
    }
}
