use super::{
    Store,
    error::CallError,
    reply::word,
    script::{Script, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<2, 1> = script!("state", uses "marks", "ended");

/// Where a job stands.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
/// let is_dead = queue.state(id).await? == Some(emq::JobState::Dead);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JobState {
    /// It can be claimed.
    Pending,
    /// A worker holds it, or held it until its lease ran out.
    Active,
    /// It is delayed, or waits for a retry.
    Scheduled,
    /// It waits until the job has ended that holds its deduplication key.
    Parked,
    /// It is a dead letter.
    Dead,
    /// It was done, and its id is still remembered.
    Finished,
    /// It was cancelled, and its id is still remembered.
    Cancelled,
    /// It was removed after a claim, or trimmed as a dead letter, and its id is still remembered.
    Removed,
    /// It stands in a state that this version doesn't know.
    Other,
}

impl JobState {
    pub(super) fn read(text: &str) -> Self {
        match text {
            "pending" => Self::Pending,
            "active" => Self::Active,
            "scheduled" => Self::Scheduled,
            "parked" => Self::Parked,
            "dead" => Self::Dead,
            "DONE" => Self::Finished,
            "CANCELLED" => Self::Cancelled,
            "REMOVED" => Self::Removed,
            _ => Self::Other,
        }
    }
}

impl Store {
    /// Where a job stands; `None` if there is none of that id.
    pub(crate) async fn state(&self, id: JobId) -> Result<Option<JobState>, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.row(id), keys.done.clone()], [id.as_str().to_owned().into()]);
        let state = word("state", &self.connection.call(call).await?.value)?;
        Ok((state != "GONE").then(|| JobState::read(&state)))
    }
}
