use std::time::Duration;

use bytes::Bytes;

use super::{
    Lease, Settled, Store,
    error::CallError,
    script::{Script, millis, number, script},
    settled::Completed,
};

pub(super) static SCRIPT: Script<9, 4> = script!("complete", uses "clock", "guard", "fence", "ending");

impl Store {
    /// Ends a claimed job as done.
    pub(crate) async fn complete(
        &self,
        lease: &Lease,
        retention: Duration,
        result: Option<Bytes>,
    ) -> Result<Completed, CallError> {
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
            ],
            [
                id.as_str().to_owned().into(),
                number(lease.token()),
                millis(retention),
                result.unwrap_or_default().into(),
            ],
        );
        let answer = self.connection.call(call).await?;
        Ok(Completed { settled: Settled::read("complete", &answer.value)?, repeated: answer.repeated })
    }
}
