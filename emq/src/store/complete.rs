use std::time::Duration;

use bytes::Bytes;

use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, millis, number, script},
};

pub(super) static SCRIPT: Script<11, 4> =
    script!("complete", uses "clock", "guard", "waiting", "lanes", "fence", "ending");

/// How long a finished job is remembered at least. Its marker is what refuses a worker that still believes in an old
/// claim, and what keeps a new job of the same id, whose tokens begin at 1 again, from being settled by it.
const LEAST_RETENTION: Duration = Duration::from_secs(60);

impl Store {
    /// Ends a claimed job as done, and remembers it for `retention`, or a minute if that is shorter.
    pub(crate) async fn complete(
        &self,
        lease: &Lease,
        retention: Duration,
        result: Option<Bytes>,
    ) -> Result<Settled, CallError> {
        let keys = &self.keys;
        let id = lease.id();
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.logs(id),
                keys.result(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.done.clone(),
                keys.deduplication.clone(),
                keys.completed.clone(),
                keys.events.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [
                id.as_str().to_owned().into(),
                number(lease.token()),
                millis(retention.max(LEAST_RETENTION)),
                result.unwrap_or_default().into(),
            ],
        );
        Settled::read("complete", &self.connection.call(call).await?.value)
    }
}
