use std::time::SystemTime;

use super::{
    Rate, Store,
    error::CallError,
    reply::Reply,
    script::{Script, script},
};

pub(super) static SCRIPT: Script<1, 0> = script!("limits");

/// What a queue as a whole may do, over all workers.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let limits = queue.limits().await?;
/// println!("at most {:?} active, and {:?} started", limits.concurrency, limits.rate);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many jobs may be active at a time; `None` for any number.
    pub concurrency: Option<u32>,
    /// How many may start in some time; `None` for any number.
    pub rate: Option<Rate>,
    /// Until when nothing starts, because a job without a lane said that it is limited elsewhere; by the server's clock.
    /// It may be over by now.
    pub held_until: Option<SystemTime>,
}

impl Store {
    /// What is set of the queue as a whole.
    pub(crate) async fn limits(&self) -> Result<Limits, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.meta.clone()], []);
        let mut reply = Reply::list("limits", self.connection.call(call).await?.value)?;
        let concurrency = reply.lenient_number()?;
        let rate = Rate::read(&reply.text()?);
        Ok(Limits { concurrency, rate, held_until: reply.lenient_time()? })
    }
}
