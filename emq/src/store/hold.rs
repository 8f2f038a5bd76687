use std::time::Duration;

use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, millis, number, script},
};

pub(super) static SCRIPT: Script<6, 3> =
    script!("hold", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

impl Store {
    /// Gives a job back without counting a failure, and lets nothing more of its lane, or else of its queue, start for
    /// `delay`.
    pub(crate) async fn hold(&self, lease: &Lease, delay: Duration) -> Result<Settled, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.meta.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), number(lease.token()), millis(delay)],
        );
        Settled::read("hold", &self.connection.call(call).await?.value)
    }
}
