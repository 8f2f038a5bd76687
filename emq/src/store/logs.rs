use super::{
    Store,
    error::CallError,
    log::MAX_LOG_LINES,
    reply::Reply,
    script::{Script, number, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<1, 1> = script!("logs");

impl Store {
    /// What the runs of a job have logged, the oldest line first.
    pub(crate) async fn logs(&self, id: JobId) -> Result<Vec<String>, CallError> {
        let call = SCRIPT.with([self.keys.logs(id)], [number(MAX_LOG_LINES as u64)]);
        let mut reply = Reply::list("logs", self.connection.call(call).await?.value)?;
        // Another implementation may have left other bytes.
        (0..reply.len()).map(|_| Ok(String::from_utf8_lossy(&reply.bytes()?).into_owned())).collect()
    }
}
