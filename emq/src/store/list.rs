use fred::types::{Key, Value};

use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};
use crate::job::{JobId, LaneName};

pub(super) static SCRIPT: Script<1, 2> = script!("list");

/// A place of a queue whose jobs can be listed.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let next = queue.list(emq::Place::Scheduled, 0, 10).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// What waits in the flat line, in the order in which it will be claimed. The score is the priority. For what waits in
    /// lanes, see [`Lane::list`](crate::Lane::list).
    Pending,
    /// What workers hold. The score is the end of the lease in Unix ms, by the server's clock.
    Active,
    /// What is delayed or waits for a retry. The score is the time it is due, in Unix ms.
    Scheduled,
    /// What waits until the job has ended that holds its deduplication key. The score is when it is next looked at whether
    /// that job is still there, in Unix ms.
    Parked,
    /// The dead letters. The score is the time of death, in Unix ms.
    Dead,
    /// What has finished and is remembered. The score is when it may be forgotten, in Unix ms.
    Finished,
}

/// A job in one place of a queue.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// for emq::Listed { id, score, .. } in queue.list(emq::Place::Active, 0, 10).await? {
///     println!("{id} is leased until {score} ms");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listed {
    /// Its id.
    pub id: JobId,
    /// What it is ordered by there; see [`Place`].
    pub score: f64,
}

impl Store {
    /// Up to `count` (at most 1 000) jobs of one place, after the first `offset`.
    pub(crate) async fn list(&self, place: Place, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        let keys = &self.keys;
        let key = match place {
            Place::Pending => &keys.pending,
            Place::Active => &keys.active,
            Place::Scheduled => &keys.schedule,
            Place::Parked => &keys.parked,
            Place::Dead => &keys.dead,
            Place::Finished => &keys.done,
        };
        self.list_key(key.clone(), offset, count).await
    }

    /// Up to `count` (at most 1 000) jobs that wait in a lane, after the first `offset`.
    pub(crate) async fn list_lane(&self, lane: &LaneName, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        self.list_key(self.keys.line(lane), offset, count).await
    }

    async fn list_key(&self, key: Key, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        let offset = offset.min(u64::from(u32::MAX));
        let count = count.clamp(1, super::MAX_BATCH) as u64;
        let call = SCRIPT.with([key], [number(offset), number(count)]);
        Listed::read(self.connection.call(call).await?.value)
    }
}

impl Listed {
    pub(super) fn read(value: Value) -> Result<Vec<Self>, CallError> {
        let mut reply = Reply::list("list", value)?;
        let mut listed = Vec::with_capacity(reply.len() / 2);
        while reply.len() > 0 {
            // An id that isn't a job's can't be named; another implementation may have left it.
            let id = reply.lenient_id()?;
            let score = reply.lenient_number()?.unwrap_or(0.0);
            listed.extend(id.map(|id| Self { id, score }));
        }
        Ok(listed)
    }
}
