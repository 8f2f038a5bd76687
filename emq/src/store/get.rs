use std::collections::HashMap;

use bytes::Bytes;
use fred::types::Value;
use serde::de::DeserializeOwned;

use super::{
    Store,
    error::CallError,
    reply::{Reply, unexpected},
    script::{Script, script},
    state::JobState,
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<3, 1> = script!("get", uses "marks", "ended");

/// Everything that is stored of a job.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
/// if let Some(job) = queue.get(id).await? {
///     println!("{:?}, claimed {} times, held by {:?}", job.state, job.attempts, job.worker);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stored {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// The name of its type.
    pub name: Option<String>,
    /// The encoded payload; empty once it has finished.
    pub payload: Bytes,
    /// How often it was claimed: the fencing token of its latest run.
    pub attempts: u64,
    /// How many runs ended in an error.
    pub failures: u32,
    /// How many runs ended because their lease ran out.
    pub stalled: u32,
    /// The text of the last failure.
    pub last_error: Option<String>,
    /// The worker that holds it.
    pub worker: Option<String>,
    /// Its priority; the lower runs first.
    pub priority: i32,
    /// After how many failures it is buried, if its enqueue said so.
    pub max_attempts: Option<u32>,
    /// The deduplication key that it was enqueued with, as it stands on the wire.
    pub deduplication_key: Option<String>,
    /// Its lane; `None` for the flat line.
    pub group: Option<String>,
    /// What its producer sent along.
    pub headers: HashMap<String, String>,
    /// The progress that its last run has told, as JSON if it is ours; [`progress_as`](Self::progress_as) decodes it.
    pub progress: Option<String>,
    /// The encoded result, if it has finished with one.
    pub result: Option<Bytes>,
}

impl Stored {
    /// The progress that its last run has told, if it has told any.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] if it isn't of this type.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(job) = queue.get(id).await? {
    ///     let rows: Option<(u64, u64)> = job.progress_as()?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn progress_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.progress.as_deref().map(serde_json::from_str).transpose()
    }
}

impl Store {
    /// Everything that is stored of a job; `None` if there is none of that id.
    pub(crate) async fn get(&self, id: JobId) -> Result<Option<Stored>, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.row(id), keys.result(id), keys.done.clone()], [id.as_str().to_owned().into()]);
        Stored::read(id, self.connection.call(call).await?.value)
    }
}

impl Stored {
    pub(super) fn read(id: JobId, value: Value) -> Result<Option<Self>, CallError> {
        let mut reply = Reply::list("get", value)?;
        let ended = match reply.text()?.as_str() {
            "DONE" => Some(JobState::Finished),
            "CANCELLED" => Some(JobState::Cancelled),
            "REMOVED" => Some(JobState::Removed),
            "GONE" => None,
            other => return Err(unexpected("get", &other.to_owned().into())),
        };
        let result = reply.optional_bytes()?;
        let mut fields = reply.list_part()?;
        let mut row: HashMap<String, Bytes> = HashMap::new();
        while fields.len() > 0 {
            row.insert(String::from_utf8_lossy(&fields.bytes()?).into_owned(), fields.bytes()?);
        }
        let text = |row: &HashMap<String, Bytes>, field: &str| {
            row.get(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        fn number<T: std::str::FromStr>(row: &HashMap<String, Bytes>, field: &str) -> Option<T> {
            std::str::from_utf8(row.get(field)?).ok()?.parse().ok()
        }
        let state = match (text(&row, "state"), ended) {
            (Some(state), _) => JobState::read(&state),
            (None, Some(ended)) if row.is_empty() => ended,
            (None, None) if row.is_empty() => return Ok(None),
            (None, _) => JobState::Other,
        };
        Ok(Some(Self {
            id,
            state,
            name: text(&row, "name"),
            payload: row.get("payload").cloned().unwrap_or_default(),
            attempts: number(&row, "attempts").unwrap_or(0),
            failures: number(&row, "failures").unwrap_or(0),
            stalled: number(&row, "stalled").unwrap_or(0),
            last_error: text(&row, "last_error"),
            worker: text(&row, "worker"),
            priority: number(&row, "priority").unwrap_or(0),
            max_attempts: number(&row, "max_attempts"),
            deduplication_key: text(&row, "did"),
            group: text(&row, "group"),
            headers: row.get("headers").and_then(|headers| serde_json::from_slice(headers).ok()).unwrap_or_default(),
            progress: text(&row, "progress"),
            result,
        }))
    }
}
