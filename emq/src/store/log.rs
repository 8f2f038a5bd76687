use super::{
    Lease, Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, kept, number, script},
};

pub(super) static SCRIPT: Script<3, 5> = script!("log");

/// How many lines of a job's log are kept, the newest: 1 000.
pub const MAX_LOG_LINES: usize = 1_000;

impl Store {
    /// Adds a line to a job's log. `n` tells the lines of a run apart. Whether the token still holds the job.
    pub(crate) async fn log(&self, lease: &Lease, n: u64, line: &str) -> Result<bool, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let stamp = format!("{} {n}", lease.token());
        let call = SCRIPT.with(
            [keys.row(id), keys.active.clone(), keys.logs(id)],
            [
                id.as_str().to_owned().into(),
                number(lease.token()),
                stamp.into(),
                number(MAX_LOG_LINES as u64),
                kept(line),
            ],
        );
        let value = self.connection.call(call).await?.value;
        match word("log", &value)?.as_str() {
            "OK" | "DONE" => Ok(true),
            "STALE" => Ok(false),
            _ => Err(unexpected("log", &value)),
        }
    }
}
