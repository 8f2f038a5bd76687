use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::{Reply, unexpected, unlike},
    script::{Invocation, Script, millis, number, script, unix_millis},
};
use crate::job::{JobId, LaneName, Unique};

pub(super) static SCRIPT: Script<7, 2> =
    script!("enqueue", uses "clock", "guard", "more", "waiting", "lanes", "unique", "events", "known");

/// The short form of it for plain jobs, which costs the server half as much.
pub(super) static ADMIT: Script<4, 0> = script!("admit", uses "clock", "waiting", "known");

/// How long it is remembered that a job was merged into another, for the same enqueue again whose answer was lost.
const MERGED_FOR: Duration = Duration::from_secs(10 * 60);

/// One job to admit.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: JobId,
    pub(crate) due: Due,
    pub(crate) payload: Bytes,
    pub(crate) unique: Option<Unique>,
    pub(crate) priority: i32,
    pub(crate) group: Option<LaneName>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) name: Option<&'static str>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) headers: Option<String>,
}

/// When a job is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Due {
    #[default]
    Now,
    /// From the server's now.
    In(Duration),
    At(SystemTime),
}

/// What became of the jobs of one call.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    /// One per job, in order.
    pub(crate) admits: Vec<Admit>,
    /// Whether an earlier try of this call may have been carried out, so that a duplicate may be of our own making.
    pub(crate) repeated: bool,
}

/// What became of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    Enqueued,
    Parked {
        behind: JobId,
    },
    Replaced {
        of: JobId,
    },
    /// `behind` whom the job that is here was parked, if it was.
    Duplicate {
        of: JobId,
        nonce: Option<String>,
        behind: Option<JobId>,
    },
    Conflict {
        with: JobId,
        nonce: Option<String>,
    },
}

impl Item {
    /// A job that is to run at once, of which nothing else is said.
    #[cfg(test)]
    pub(crate) fn bare(id: JobId, payload: impl Into<Bytes>) -> Self {
        Self {
            id,
            due: Due::Now,
            payload: payload.into(),
            unique: None,
            priority: 0,
            group: None,
            expires_in: None,
            name: None,
            max_attempts: None,
            headers: None,
        }
    }

    /// Its name, if nothing else is said of the job: it is to run at once, in the flat line, as its type says.
    fn plain_name(&self) -> Option<&'static str> {
        let Self { id: _, due, payload: _, unique, priority, group, expires_in, name, max_attempts, headers } = self;
        let is_plain = matches!(due, Due::Now | Due::In(Duration::ZERO))
            && *priority == 0
            && unique.is_none()
            && group.is_none()
            && expires_in.is_none()
            && max_attempts.is_none()
            && headers.is_none();
        name.filter(|_| is_plain)
    }
}

impl Store {
    /// Admits up to [`MAX_BATCH`](super::MAX_BATCH) jobs in one call.
    pub(crate) async fn enqueue(&self, nonce: Option<&str>, items: &[Item]) -> Result<Admitted, CallError> {
        let plain = if nonce.is_none() { self.plain_call(items) } else { None };
        let answer = self.connection.call(plain.unwrap_or_else(|| self.full_call(nonce, items))).await?;
        Ok(Admitted { admits: Admit::read_all(answer.value, items.len())?, repeated: answer.repeated })
    }

    /// The call of `admit`, if all the jobs are plain.
    fn plain_call(&self, items: &[Item]) -> Option<Invocation> {
        let keys = &self.keys;
        let mut more = Vec::with_capacity(items.len() * 3);
        for item in items {
            let name = item.plain_name()?;
            more.extend([item.id.as_str().into(), Value::from_static_str(name), item.payload.clone().into()]);
        }
        Some(ADMIT.with_more(
            [keys.rows.clone(), keys.pending.clone(), keys.done.clone(), keys.marker.clone()],
            [],
            more,
        ))
    }

    fn full_call(&self, nonce: Option<&str>, items: &[Item]) -> Invocation {
        let keys = &self.keys;
        let mut more = Vec::with_capacity(items.len() * 10);
        items.iter().for_each(|item| push(item, &mut more));
        SCRIPT.with_more(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.schedule.clone(),
                keys.done.clone(),
                keys.deduplication.clone(),
                keys.marker.clone(),
                keys.root.clone(),
            ],
            [nonce.unwrap_or_default().to_owned().into(), millis(MERGED_FOR)],
            more,
        )
    }
}

fn push(item: &Item, args: &mut Vec<Value>) {
    args.push(item.id.as_str().to_owned().into());
    args.push(match item.due {
        Due::Now | Due::In(Duration::ZERO) => "".into(),
        Due::In(delay) => format!("+{}", millis(delay).as_string().unwrap_or_default()).into(),
        Due::At(time) => unix_millis(time),
    });
    args.push(item.unique.as_ref().map(Unique::conflict_text).unwrap_or_default().into());
    args.push(item.payload.clone().into());
    let fields: Vec<(&str, Value)> = [
        item.unique.as_ref().map(|unique| ("did", unique.key_on_the_wire().into())),
        item.unique.as_ref().and_then(Unique::held_text).map(|held| ("unique", held.into())),
        (item.priority != 0).then(|| ("priority", number(item.priority))),
        item.group.as_ref().map(|group| ("group", group.as_str().to_owned().into())),
        item.expires_in.map(|wait| ("expires", millis(wait))),
        item.name.map(|name| ("name", name.into())),
        item.max_attempts.map(|max| ("max_attempts", number(max))),
        item.headers.clone().map(|headers| ("headers", headers.into())),
    ]
    .into_iter()
    .flatten()
    .collect();
    args.push(number(fields.len() as u64));
    for (name, value) in fields {
        args.push(name.into());
        args.push(value);
    }
}

impl Admit {
    /// Reads the answer to `enqueue` or `admit` for as many jobs as were sent: one text per job, or one for all.
    pub(super) fn read_all(value: Value, jobs: usize) -> Result<Vec<Self>, CallError> {
        if value.as_bytes() == Some(b"ENQUEUED") {
            return Ok(vec![Self::Enqueued; jobs]);
        }
        let mut reply = Reply::list("enqueue", value)?;
        if reply.len() != jobs {
            return Err(unlike(reply.call(), &format!("{} answers for {jobs} jobs", reply.len())));
        }
        (0..jobs).map(|_| Self::read(&reply.text()?)).collect()
    }

    fn read(text: &str) -> Result<Self, CallError> {
        if text == "ENQUEUED" {
            return Ok(Self::Enqueued);
        }
        let mut words = text.split(' ');
        let word = words.next();
        let id = words.next().and_then(|id| id.parse().ok());
        let nonce = words.next().filter(|nonce| !nonce.is_empty()).map(str::to_owned);
        let behind = words.next().and_then(|id| id.parse().ok());
        match (word, id) {
            (Some("PARKED"), Some(behind)) => Ok(Self::Parked { behind }),
            (Some("REPLACED"), Some(of)) => Ok(Self::Replaced { of }),
            (Some("DUPLICATE"), Some(of)) => Ok(Self::Duplicate { of, nonce, behind }),
            (Some("CONFLICT"), Some(with)) => Ok(Self::Conflict { with, nonce }),
            _ => Err(unexpected("enqueue", &text.to_owned().into())),
        }
    }
}
