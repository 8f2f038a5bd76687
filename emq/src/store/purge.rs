use std::time::Duration;

use super::{
    MAX_BATCH, Place, Store,
    error::CallError,
    reply::Reply,
    script::{Script, millis, number, script},
};
use crate::job::DEFAULT_RETENTION;

pub(super) static SCRIPT: Script<5, 5> =
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
        let dies = u8::from(place == Place::Dead);
        let call = SCRIPT.with(
            [keys.rows.clone(), key.clone(), keys.done.clone(), keys.events.clone(), keys.root.clone()],
            [number(offset), number(MAX_BATCH as u64), millis(older_than), number(dies), millis(DEFAULT_RETENTION)],
        );
        let mut reply = Reply::list("purge", self.connection.call(call).await?.value)?;
        Ok(Slice { looked_at: reply.count()?, removed: reply.count()? })
    }
}
