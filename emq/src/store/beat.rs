use std::time::Duration;

use fred::types::Value;

use super::{
    Promoted, Reaped, Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<10, 2> = script!("beat",
    uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "reap", "promote"
);

/// The most jobs that each of the transitions of one beat moves: half of a batch, since there are two.
const MOST: u64 = super::MAX_BATCH as u64 / 2;

/// What one beat did and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// `None` if it failed: called by itself, it says why.
    pub(crate) reaped: Option<Reaped>,
    /// The same.
    pub(crate) promoted: Option<Promoted>,
    /// How long until the next slot of a recurring job; zero if one is due.
    pub(crate) next_slot: Option<Duration>,
    /// There is nothing that time could do anything to.
    pub(crate) is_quiet: bool,
}

impl Store {
    /// Reaps and promotes, a part of a batch each, and looks for the next slot of a recurring job.
    pub(crate) async fn beat(&self, max_stalled: Option<u32>) -> Result<Beat, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.rows.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.pending.clone(),
                keys.dead.clone(),
                keys.marker.clone(),
                keys.failed.clone(),
                keys.events.clone(),
                keys.recurring.clone(),
                keys.root.clone(),
            ],
            [max_stalled.map_or_else(|| "".into(), number), number(MOST)],
        );
        Beat::read(self.connection.call(call).await?.value)
    }
}

impl Beat {
    pub(super) fn read(value: Value) -> Result<Self, CallError> {
        let mut reply = Reply::list("beat", value)?;
        let (reaped, promoted) = (reply.list_part()?, reply.list_part()?);
        Ok(Self {
            reaped: (reaped.len() > 0).then(|| Reaped::of(reaped)).transpose()?,
            promoted: (promoted.len() > 0).then(|| Promoted::of(promoted)).transpose()?,
            next_slot: reply.wait()?,
            is_quiet: reply.count()? == 0,
        })
    }
}
