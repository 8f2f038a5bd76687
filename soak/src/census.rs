//! Every key of the server, held against what may be there once nothing is left to do.

use std::collections::HashMap;

use emq::{BoxError, JobId};
use support::{Raw, Reply};

use crate::book::Entry;

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

/// What there is one of at most.
const SINGLES: [&str; 7] = [
    "{emq}:version",
    "emq:{soak}:dead",
    "emq:{soak}:done",
    "emq:{soak}:marker",
    "emq:{soak}:claims",
    "emq:{soak}:metrics:completed",
    "emq:{soak}:metrics:failed",
];

/// Counts all keys. `processes` is how many clients and workers there ever were.
pub(crate) async fn take(port: u16, jobs: &HashMap<JobId, Entry>, processes: u64) -> Result<Census, BoxError> {
    let mut raw = Raw::open(port).await?;
    let mut census = Census::default();
    let Reply::Array(keys) = raw.try_command(&["KEYS", "*"]).await? else {
        return Err("the server doesn't name its keys".into());
    };
    for key in &keys {
        let key = key.text();
        if let Some(why) = census.count(key, jobs) {
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
    for (what, number) in [("claims", census.claims), ("node numbers", census.nodes)] {
        if number > processes {
            census.violations.push(format!("{number} {what} of {processes} processes"));
        }
    }
    Ok(census)
}

impl Census {
    /// Counts a key, and says what is wrong with it.
    fn count(&mut self, key: &str, jobs: &HashMap<JobId, Entry>) -> Option<&'static str> {
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
        let Some(entry) = id.parse().ok().and_then(|id: JobId| jobs.get(&id)) else {
            return Some("is of no job that was enqueued");
        };
        match (kind, entry.dies_after) {
            (None, Some(_)) => self.rows += 1,
            (None, None) => return Some("is the row of a job that has succeeded"),
            (Some("result"), None) => self.results += 1,
            (Some("result"), Some(_)) => return Some("is the result of a job that has failed"),
            (Some(_), _) => return Some("belongs to a job that has ended"),
        }
        None
    }
}
