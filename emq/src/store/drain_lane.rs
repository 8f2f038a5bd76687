use std::time::Duration;

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, millis, number, script},
};
use crate::job::LaneName;

pub(super) static SCRIPT: Script<3, 3> =
    script!("drain_lane", uses "clock", "guard", "waiting", "lanes", "unique", "events");

/// What one call that drains a lane has done.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), Box<dyn std::error::Error>> {
/// let lane = queue.lane("tenant-7")?;
/// while lane.drain().await?.left > 0 {}
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneDrained {
    /// How many waiting jobs it has removed.
    pub removed: u64,
    /// How many wait still.
    pub left: u64,
}

impl Store {
    /// Deletes up to `limit` jobs that wait in a lane. The id of a job that was ever claimed stays taken for `retention`.
    pub(crate) async fn drain_lane(
        &self,
        lane: &LaneName,
        limit: usize,
        retention: Duration,
    ) -> Result<LaneDrained, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [keys.rows.clone(), keys.done.clone(), keys.root.clone()],
            [LaneName::on_wire(Some(lane)).into(), number(limit as u64), millis(retention)],
        );
        let mut reply = Reply::list("drain_lane", self.connection.call(call).await?.value)?;
        Ok(LaneDrained { removed: reply.count()?, left: reply.count()? })
    }
}
