use std::time::Duration;

use super::{
    Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, millis, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<9, 2> =
    script!("remove", uses "clock", "guard", "waiting", "lanes", "unique", "events");

/// What became of a removal.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
/// assert_eq!(queue.remove(id).await?, emq::Removed::Removed);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Removed {
    /// The job is gone.
    Removed,
    /// A worker holds the job; nothing was written.
    Active,
    /// There is no such job, or it has finished; nothing was written.
    Gone,
}

impl Store {
    /// Deletes a job that no worker holds. The id of a job that was ever claimed stays taken for `retention`.
    pub(crate) async fn remove(&self, id: JobId, retention: Duration) -> Result<Removed, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.logs(id),
                keys.result(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.done.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), millis(retention)],
        );
        match self.connection.call(call).await {
            Ok(answer) => match word("remove", &answer.value)?.as_str() {
                "OK" => Ok(Removed::Removed),
                // An earlier try of this very call may have removed it.
                "GONE" if answer.repeated => Ok(Removed::Removed),
                "GONE" => Ok(Removed::Gone),
                _ => Err(unexpected("remove", &answer.value)),
            },
            Err(error) if error.is_code("EMQLOCK") => Ok(Removed::Active),
            Err(error) => Err(error),
        }
    }
}
