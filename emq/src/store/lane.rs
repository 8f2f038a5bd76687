use std::time::SystemTime;

use super::{
    Rate, Store,
    error::CallError,
    reply::Reply,
    script::{Script, script},
};
use crate::job::LaneName;

pub(super) static SCRIPT: Script<1, 1> = script!("lane", uses "guard", "waiting", "lanes");

/// How a lane stands.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), Box<dyn std::error::Error>> {
/// let lane = queue.lane("tenant-7")?.state().await?;
/// println!("{} wait, {} of at most {:?} run", lane.waiting, lane.active, lane.concurrency);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LaneState {
    /// How many of its jobs wait.
    pub waiting: u64,
    /// How many of its jobs workers hold.
    pub active: u64,
    /// How many may be active at a time; `None` for any number.
    pub concurrency: Option<u32>,
    /// How many jobs it has in one turn.
    pub weight: u32,
    /// How many may start in some time; `None` for any number.
    pub rate: Option<Rate>,
    /// Whether it is paused.
    pub paused: bool,
    /// Until when it is held back, by its rate or because a job of it said that it is limited elsewhere; by the server's
    /// clock. Such a hold ends within a beat of that time.
    pub held_until: Option<SystemTime>,
}

impl Store {
    /// How a lane stands.
    pub(crate) async fn lane(&self, lane: &LaneName) -> Result<LaneState, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.root.clone()], [LaneName::on_wire(Some(lane)).into()]);
        let mut reply = Reply::list("lane", self.connection.call(call).await?.value)?;
        let (waiting, active, paused) = (reply.count()?, reply.count()?, reply.integer()? == 1);
        let concurrency = reply.lenient_number()?;
        let weight = reply.lenient_number()?.unwrap_or(1).max(1);
        let rate = Rate::read(&reply.text()?);
        let held_until = reply.lenient_time()?;
        Ok(LaneState { waiting, active, concurrency, weight, rate, paused, held_until })
    }
}
