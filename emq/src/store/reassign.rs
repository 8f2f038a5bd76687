use super::{
    Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, script},
};
use crate::job::{JobId, LaneName};

pub(super) static SCRIPT: Script<5, 2> = script!("reassign", uses "guard", "waiting", "lanes");

/// What became of a job that was to change its lane.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
/// let lane = queue.lane("slow")?;
/// assert_eq!(queue.reassign(id, Some(&lane)).await?, emq::Reassigned::Reassigned);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reassigned {
    /// The job is of that lane now, or was before.
    Reassigned,
    /// A worker holds the job; nothing was written.
    Active,
    /// There is no such job, or it has finished; nothing was written.
    Gone,
}

impl Store {
    /// Puts a job that no worker holds into another lane, or into none.
    pub(crate) async fn reassign(&self, id: JobId, lane: Option<&LaneName>) -> Result<Reassigned, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [keys.row(id), keys.active.clone(), keys.pending.clone(), keys.marker.clone(), keys.root.clone()],
            [id.as_str().to_owned().into(), LaneName::on_wire(lane).into()],
        );
        match self.connection.call(call).await {
            Ok(answer) => match word("reassign", &answer.value)?.as_str() {
                "OK" => Ok(Reassigned::Reassigned),
                "GONE" => Ok(Reassigned::Gone),
                _ => Err(unexpected("reassign", &answer.value)),
            },
            Err(error) if error.is_code("EMQLOCK") => Ok(Reassigned::Active),
            Err(error) => Err(error),
        }
    }
}
