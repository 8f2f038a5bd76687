use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::{Reply, unexpected},
    script::{Script, number, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<8, 1> = script!("fire", uses "clock", "guard", "more", "waiting", "lanes", "unique");

/// What is to become of one recurring job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) name: String,
    /// The slot that it stands at, in Unix ms; `None` runs it beside its slots.
    pub(crate) stands_at: Option<i64>,
    /// The slot that it is to stand at then; `None` if there is none any more.
    pub(crate) next: Option<i64>,
    /// The oldest slot first.
    pub(crate) runs: Vec<Run>,
}

/// One job of a recurring job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: JobId,
    pub(crate) slot: Option<i64>,
}

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fired {
    /// So many jobs were enqueued.
    Enqueued(u64),
    /// Its slot waits for the end of its last job.
    Held,
    /// Another has dealt with it, or it is paused.
    Stale,
    /// There is a job of one of these ids already, which may be that of an earlier try.
    Taken { nonce: Option<String>, repeated: bool },
    /// There is none of this name.
    Gone,
}

impl Store {
    /// Enqueues the jobs of slots and advances their recurring jobs: up to [`MAX_BATCH`](super::MAX_BATCH) jobs, or half a
    /// batch more if the last turn has as many.
    pub(crate) async fn fire(&self, nonce: Option<&str>, turns: &[Turn]) -> Result<Vec<Fired>, CallError> {
        let keys = &self.keys;
        let slot = |slot: Option<i64>| slot.map_or_else(|| Value::from(""), number);
        let mut more: Vec<Value> = Vec::new();
        for turn in turns {
            more.extend([turn.name.clone().into(), slot(turn.stands_at), slot(turn.next)]);
            more.push(number(turn.runs.len() as u64));
            more.extend(turn.runs.iter().flat_map(|run| [run.id.as_str().to_owned().into(), slot(run.slot)]));
        }
        let call = SCRIPT.with_more(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.done.clone(),
                keys.deduplication.clone(),
                keys.marker.clone(),
                keys.recurring.clone(),
                keys.records.clone(),
                keys.root.clone(),
            ],
            [nonce.unwrap_or_default().to_owned().into()],
            more,
        );
        let answer = self.connection.call(call).await?;
        let mut reply = Reply::list("fire", answer.value)?;
        if reply.len() != turns.len() {
            let detail = format!("{} answers for {} recurring jobs", reply.len(), turns.len());
            return Err(CallError::UnexpectedReply { call: "fire", detail });
        }
        turns.iter().map(|_| read(&reply.text()?, answer.repeated)).collect()
    }
}

fn read(text: &str, repeated: bool) -> Result<Fired, CallError> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (word, rest.parse()) {
        ("FIRED", Ok(jobs)) => Ok(Fired::Enqueued(jobs)),
        ("HELD", _) => Ok(Fired::Held),
        ("STALE", _) => Ok(Fired::Stale),
        ("TAKEN", _) => Ok(Fired::Taken { nonce: Some(rest.to_owned()).filter(|nonce| !nonce.is_empty()), repeated }),
        ("GONE", _) => Ok(Fired::Gone),
        _ => Err(unexpected("fire", &text.to_owned().into())),
    }
}
