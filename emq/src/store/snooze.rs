use std::time::Duration;

use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, millis, number, script},
};

pub(super) static SCRIPT: Script<6, 3> =
    script!("snooze", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

impl Store {
    /// Puts a job on the schedule without counting a failure.
    pub(crate) async fn snooze(&self, lease: &Lease, delay: Duration) -> Result<Settled, CallError> {
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
            [id.as_str().to_owned().into(), number(lease.token()), millis(delay)],
        );
        Settled::read("snooze", &self.connection.call(call).await?.value)
    }
}
