//! Every key of the server, held against what may be there once nothing is left to do.

use std::collections::HashMap;

use emq::{BoxError, JobId};
use support::{Raw, Reply};

use crate::{
    book::{Entry, Removal},
    jobs::End,
};

/// How long after its time a finished job may still be remembered: until a worker trims.
const TRIM_LAG_MS: i64 = 30_000;

/// What is known without the server, to hold its keys against.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    pub(crate) jobs: &'a HashMap<JobId, Entry>,
    pub(crate) removals: &'a HashMap<JobId, Removal>,
    /// How many jobs can have been completed so late that their results are still kept.
    pub(crate) late: u64,
    /// How many clients and workers there ever were.
    pub(crate) processes: u64,
    /// When everything was done and workers still ran, by the server's clock.
    pub(crate) drained_at: i64,
}

/// How many keys there are of each kind.
#[derive(Debug, Default)]
pub(crate) struct Census {
    pub(crate) rows: u64,
    pub(crate) results: u64,
    pub(crate) nodes: u64,
    pub(crate) others: u64,
    pub(crate) claims: u64,
    pub(crate) violations: Vec<String>,
}

/// The queue's own settings. Of them, whose turn it is may be left, and nothing else: it isn't paused.
const META: &str = "emq:{soak}:meta";

/// What there is one of at most. Lanes leave no more than that behind: no slot, no waiting place, no turn in the ring.
const SINGLES: [&str; 10] = [
    "{emq}:version",
    "emq:{soak}:dead",
    "emq:{soak}:done",
    "emq:{soak}:marker",
    "emq:{soak}:claims",
    "emq:{soak}:glimit",
    META,
    "emq:{soak}:wake",
    "emq:{soak}:metrics:completed",
    "emq:{soak}:metrics:failed",
];

/// Counts all keys.
pub(crate) async fn take(port: u16, known: &Known<'_>) -> Result<Census, BoxError> {
    let mut raw = Raw::open(port).await?;
    let mut census = Census::default();
    let Reply::Array(keys) = raw.try_command(&["KEYS", "*"]).await? else {
        return Err("the server doesn't name its keys".into());
    };
    for key in &keys {
        let key = key.text();
        if let Some(why) = census.count(key, known) {
            census.violations.push(format!("the key {key} {why}"));
        }
        let expires = key.ends_with(":result") || key.starts_with("{emq}:node:");
        // It may have gone since then.
        let ttl = raw.try_command(&["PTTL", key]).await?.int();
        if ttl != -2 && expires != (ttl >= 0) {
            census.violations.push(format!("the key {key} has a time to live of {ttl} ms"));
        }
    }
    census.claims = raw.try_command(&["HLEN", "emq:{soak}:claims"]).await?.int().unsigned_abs();
    for field in raw.try_command(&["HKEYS", META]).await?.items().iter().map(Reply::text) {
        if field != "turn" {
            census.violations.push(format!("the queue has {field} among its settings"));
        }
    }
    let overdue = (known.drained_at - TRIM_LAG_MS).to_string();
    let overdue = raw.try_command(&["ZCOUNT", "emq:{soak}:done", "-inf", &overdue]).await?.int().unsigned_abs();
    for (what, number, most) in [
        ("notes of claims", census.claims, known.processes),
        ("node numbers", census.nodes, known.processes),
        ("results", census.results, known.late),
        ("finished jobs that should be forgotten", overdue, 0),
    ] {
        if number > most {
            census.violations.push(format!("there are {number} {what}, and {most} can be explained"));
        }
    }
    Ok(census)
}

/// The server's clock in ms.
pub(crate) async fn server_time(port: u16) -> Result<i64, BoxError> {
    let time = Raw::open(port).await?.try_command(&["TIME"]).await?;
    let [seconds, _] = time.items() else { return Err("the server doesn't tell the time".into()) };
    Ok(seconds.text().parse::<i64>()? * 1_000)
}

impl Census {
    /// Counts a key, and says what is wrong with it.
    fn count(&mut self, key: &str, known: &Known<'_>) -> Option<&'static str> {
        if SINGLES.contains(&key) {
            self.others += 1;
            return None;
        }
        if key.starts_with("{emq}:node:") {
            self.nodes += 1;
            return None;
        }
        let Some(rest) = key.strip_prefix("emq:{soak}:job:") else {
            return Some("is of no known kind, or of one that may not be left");
        };
        let (id, kind) = rest.split_once(':').map_or((rest, None), |(id, kind)| (id, Some(kind)));
        let Some(id) = id.parse().ok() else { return Some("is of no job") };
        let Some(entry) = known.jobs.get(&id) else { return Some("is of no job that was enqueued") };
        let is_removed = known.removals.get(&id) == Some(&Removal::Certain);
        match (kind, entry.end) {
            _ if is_removed => return Some("is of a job that was removed"),
            (None, End::Dead { .. } | End::DoneOrExpired) => self.rows += 1,
            (None, End::Done | End::Discarded) => return Some("is the row of a job that has succeeded"),
            (Some("result"), End::Done | End::DoneOrExpired) => self.results += 1,
            (Some("result"), End::Discarded) => return Some("is the result of a job that had nothing to do"),
            (Some("result"), End::Dead { .. }) => return Some("is the result of a job that has failed"),
            (Some(_), _) => return Some("belongs to a job that has ended"),
        }
        None
    }
}
