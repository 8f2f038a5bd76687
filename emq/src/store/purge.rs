use std::time::Duration;

use fred::types::Key;

use super::{
    MAX_BATCH, Place, Store,
    error::CallError,
    reply::Reply,
    script::{Script, millis, number, script},
};
use crate::job::{DEFAULT_RETENTION, LaneName};

pub(super) static SCRIPT: Script<5, 6> =
    script!("purge", uses "clock", "guard", "waiting", "lanes", "unique", "events");

/// What one slice of a purge looked at, and deleted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) looked_at: u64,
    pub(crate) removed: u64,
}

impl Store {
    /// Deletes those of the next jobs of a place, after the first `offset`, that are at least so old.
    pub(crate) async fn purge(&self, place: Place, offset: u64, older_than: Duration) -> Result<Slice, CallError> {
        let keys = &self.keys;
        let key = match place {
            Place::Scheduled => &keys.schedule,
            Place::Parked => &keys.parked,
            Place::Dead => &keys.dead,
            _ => &keys.pending,
        };
        self.purge_from(key.clone(), place == Place::Dead, None, offset, older_than).await
    }

    /// The same of the jobs that wait in a lane.
    pub(crate) async fn purge_lane(
        &self,
        lane: &LaneName,
        offset: u64,
        older_than: Duration,
    ) -> Result<Slice, CallError> {
        self.purge_from(self.keys.line(lane), false, Some(lane), offset, older_than).await
    }

    async fn purge_from(
        &self,
        place: Key,
        dies: bool,
        lane: Option<&LaneName>,
        offset: u64,
        older_than: Duration,
    ) -> Result<Slice, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [keys.rows.clone(), place, keys.done.clone(), keys.events.clone(), keys.root.clone()],
            [
                number(offset),
                number(MAX_BATCH as u64),
                millis(older_than),
                number(u8::from(dies)),
                millis(DEFAULT_RETENTION),
                LaneName::on_wire(lane).into(),
            ],
        );
        let mut reply = Reply::list("purge", self.connection.call(call).await?.value)?;
        Ok(Slice { looked_at: reply.count()?, removed: reply.count()? })
    }
}
