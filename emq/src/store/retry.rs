use std::time::Duration;

use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, kept, millis, number, script},
};

pub(super) static SCRIPT: Script<6, 4> =
    script!("retry", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

impl Store {
    /// Puts a failed job on the schedule.
    pub(crate) async fn retry(&self, lease: &Lease, delay: Duration, error: &str) -> Result<Settled, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.schedule.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), number(lease.token()), millis(delay), kept(error)],
        );
        Settled::read("retry", &self.connection.call(call).await?.value)
    }
}
