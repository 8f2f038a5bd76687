use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, kept, number, script},
};

pub(super) static SCRIPT: Script<8, 3> =
    script!("bury", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

impl Store {
    /// Makes a job a dead letter.
    pub(crate) async fn bury(&self, lease: &Lease, error: &str) -> Result<Settled, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.dead.clone(),
                keys.failed.clone(),
                keys.events.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), number(lease.token()), kept(error)],
        );
        Settled::read("bury", &self.connection.call(call).await?.value)
    }
}
