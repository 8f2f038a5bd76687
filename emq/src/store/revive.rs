use super::{
    Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<6, 1> =
    script!("revive", uses "clock", "guard", "waiting", "lanes", "unique", "events");

/// What became of a revival.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
/// assert_eq!(queue.revive(id).await?, emq::Revived::Revived);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Revived {
    /// The job waits again, with a fresh budget of attempts and stalls.
    Revived,
    /// The job isn't dead; nothing was written.
    NotDead,
    /// There is no such job; nothing was written.
    Gone,
}

impl Store {
    /// Brings a dead letter back.
    pub(crate) async fn revive(&self, id: JobId) -> Result<Revived, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.row(id),
                keys.dead.clone(),
                keys.pending.clone(),
                keys.marker.clone(),
                keys.deduplication.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into()],
        );
        match self.connection.call(call).await {
            Ok(answer) => match word("revive", &answer.value)?.as_str() {
                "OK" => Ok(Revived::Revived),
                // An earlier try of this very call revived it.
                "DONE" if answer.repeated => Ok(Revived::Revived),
                "DONE" => Ok(Revived::NotDead),
                "GONE" => Ok(Revived::Gone),
                _ => Err(unexpected("revive", &answer.value)),
            },
            Err(error) if error.is_code("EMQSTATE") => Ok(Revived::NotDead),
            Err(error) => Err(error),
        }
    }
}
