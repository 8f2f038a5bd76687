use super::{
    Lease, Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<3, 3> = script!("progress", uses "events");

impl Store {
    /// Keeps how far a run is; `value` is JSON. Whether the token still holds the job.
    pub(crate) async fn progress(&self, lease: &Lease, value: String) -> Result<bool, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [keys.row(id), keys.active.clone(), keys.events.clone()],
            [id.as_str().to_owned().into(), number(lease.token()), value.into()],
        );
        let value = self.connection.call(call).await?.value;
        match word("progress", &value)?.as_str() {
            "OK" => Ok(true),
            "STALE" => Ok(false),
            _ => Err(unexpected("progress", &value)),
        }
    }
}
