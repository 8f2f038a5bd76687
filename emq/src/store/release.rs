use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<5, 2> =
    script!("release", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

impl Store {
    /// Gives a job back at once, without counting a failure.
    pub(crate) async fn release(&self, lease: &Lease) -> Result<Settled, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [keys.row(id), keys.active.clone(), keys.pending.clone(), keys.marker.clone(), keys.root.clone()],
            [id.as_str().to_owned().into(), number(lease.token())],
        );
        Settled::read("release", &self.connection.call(call).await?.value)
    }
}
