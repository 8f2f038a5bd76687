use fred::types::Value;

use super::{
    Due, Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, millis, number, script, unix_millis},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<7, 3> = script!("update", uses "clock", "guard", "waiting", "lanes");

/// What became of an update.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
/// use emq::Updated;
///
/// if queue.update(id).priority(-5).await? == Updated::Active {
///     println!("too late: it runs");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Updated {
    /// The job is as it was to be.
    Updated,
    /// A worker holds the job; nothing was written.
    Active,
    /// The job is a dead letter; nothing was written.
    Dead,
    /// There is no such job, or it has ended; nothing was written.
    Gone,
}

/// What of a job is to be another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) due: Option<Due>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) priority: Option<i32>,
}

impl Store {
    /// Changes a job that waits or is scheduled.
    pub(crate) async fn update(&self, id: JobId, change: Change) -> Result<Updated, CallError> {
        let keys = &self.keys;
        let due = match change.due {
            None => "".into(),
            Some(Due::Now) => "now".into(),
            Some(Due::In(delay)) => format!("+{}", millis(delay).as_string().unwrap_or_default()).into(),
            Some(Due::At(time)) => unix_millis(time),
        };
        let mut fields: Vec<Value> = Vec::new();
        if let Some(payload) = change.payload {
            fields.extend(["payload".into(), payload.as_slice().into()]);
        }
        if let Some(priority) = change.priority {
            fields.extend(["priority".into(), number(priority)]);
        }
        let nonce = format!("{:016x}", rand::random::<u64>());
        let call = SCRIPT.with_more(
            [
                keys.row(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), nonce.into(), due],
            fields,
        );
        match self.connection.call(call).await {
            Ok(answer) => match word("update", &answer.value)?.as_str() {
                "OK" | "DONE" => Ok(Updated::Updated),
                "GONE" => Ok(Updated::Gone),
                _ => Err(unexpected("update", &answer.value)),
            },
            Err(error) if error.is_code("EMQLOCK") => Ok(Updated::Active),
            Err(error) if error.is_code("EMQSTATE") => Ok(Updated::Dead),
            Err(error) => Err(error),
        }
    }
}
