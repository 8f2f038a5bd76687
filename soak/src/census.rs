//! Every key of the server, held against what may be there once nothing is left to do.

use emq::{BoxError, JobId};
use support::{Raw, Reply};

use crate::{
    facts::Facts,
    jobs::{End, QUEUE, SCRAP},
    keys::{Mode, WINDOW},
};

/// How long after its time a finished job may still be remembered: until a worker trims.
const TRIM_LAG_MS: i64 = 30_000;

/// For how long it is remembered what was merged into which job.
const MERGED_MS: i64 = 600_000;

/// What is known without the server, to hold its keys against.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    pub(crate) facts: &'a Facts,
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

/// What there is one of at most in each queue. Lanes leave no more than their settings: no slot, no waiting place, no turn in
/// the ring, no pause. Nor is there anything of recurring or parked jobs.
const SINGLES: [&str; 11] = [
    "dead",
    "done",
    "marker",
    "claims",
    "glimit",
    "gweight",
    "grate",
    "wake",
    "windows",
    "metrics:completed",
    "metrics:failed",
];

/// A queue's own settings. Of them, whose turn it is may be left, and its limit: it isn't paused.
const META: &str = "meta";
const SETTINGS: [(&str, &[&str]); 2] = [(QUEUE, &["turn"]), (SCRAP, &["turn", "concurrency"])];

/// Counts all keys.
pub(crate) async fn take(port: u16, known: &Known<'_>) -> Result<Census, BoxError> {
    let mut raw = Raw::open(port).await?;
    let mut census = Census::default();
    for key in keys(&mut raw, "*").await? {
        let ttl = raw.try_command(&["PTTL", &key]).await?.int();
        // It may have gone since then.
        if ttl == -2 {
            continue;
        }
        match census.count(&key, known.facts) {
            Err(why) => census.violations.push(format!("the key {key} {why}")),
            Ok(Kept::ForEver) if ttl == -1 => {}
            Ok(Kept::For(most)) if (0..=most).contains(&ttl) => {}
            Ok(kept) => census.violations.push(format!("the key {key} has {ttl} ms to live, and should have {kept:?}")),
        }
    }
    let overdue = (known.drained_at - TRIM_LAG_MS).to_string();
    for (queue, settings) in SETTINGS {
        let key = |part: &str| format!("emq:{{{queue}}}:{part}");
        let claims = raw.try_command(&["HLEN", &key("claims")]).await?.int().unsigned_abs();
        census.at_most("notes of claims", claims, known.processes);
        census.claims += claims;
        for field in raw.try_command(&["HKEYS", &key(META)]).await?.items().iter().map(Reply::text) {
            if !settings.contains(&field) {
                census.violations.push(format!("the queue {queue} has {field} among its settings"));
            }
        }
        let forgotten = raw.try_command(&["ZCOUNT", &key("done"), "-inf", &overdue]).await?.int().unsigned_abs();
        census.at_most("finished jobs that should be forgotten", forgotten, 0);
        let windows = raw.try_command(&["ZCOUNT", &key("windows"), "-inf", &overdue]).await?.int().unsigned_abs();
        census.at_most("windows that should be forgotten", windows, 0);
    }
    census.at_most("node numbers", census.nodes, known.processes);
    census.at_most("results", census.results, known.late);
    Ok(census)
}

/// The keys of this pattern.
pub(crate) async fn keys(raw: &mut Raw, pattern: &str) -> Result<Vec<String>, BoxError> {
    let Reply::Array(keys) = raw.try_command(&["KEYS", pattern]).await? else {
        return Err("the server doesn't name its keys".into());
    };
    Ok(keys.iter().map(|key| key.text().to_owned()).collect())
}

/// The server's clock in ms.
pub(crate) async fn server_time(port: u16) -> Result<i64, BoxError> {
    let time = Raw::open(port).await?.try_command(&["TIME"]).await?;
    let [seconds, _] = time.items() else { return Err("the server doesn't tell the time".into()) };
    Ok(seconds.text().parse::<i64>()? * 1_000)
}

/// How long a key lives by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    ForEver,
    /// So many ms at most.
    For(i64),
}

impl Census {
    fn at_most(&mut self, what: &str, number: u64, most: u64) {
        if number > most {
            self.violations.push(format!("there are {number} {what}, and {most} can be explained"));
        }
    }

    /// Counts a key, and says for how long it is kept, or what is wrong with it.
    fn count(&mut self, key: &str, facts: &Facts) -> Result<Kept, String> {
        if key == "{emq}:version" {
            self.others += 1;
            return Ok(Kept::ForEver);
        }
        if key.starts_with("{emq}:node:") {
            self.nodes += 1;
            return Ok(Kept::For(60_000));
        }
        let parts = [QUEUE, SCRAP].iter().find_map(|queue| key.strip_prefix(&format!("emq:{{{queue}}}:")));
        let Some(part) = parts else { return Err("is of no queue".into()) };
        if part == META || SINGLES.contains(&part) {
            self.others += 1;
            return Ok(Kept::ForEver);
        }
        match part.split_once(':') {
            Some(("job", rest)) => {
                let (id, kind) = rest.split_once(':').map_or((rest, None), |(id, kind)| (id, Some(kind)));
                self.count_of_job(id.parse().map_err(|_| "is of no job")?, kind, facts)
            }
            // It has outlived its job.
            Some(("de", key)) if [Mode::Window, Mode::Rest].iter().any(|mode| mode.names(key)) => {
                self.others += 1;
                Ok(Kept::For(i64::try_from(WINDOW.as_millis()).unwrap_or(0)))
            }
            Some(("merged", _)) => {
                self.others += 1;
                Ok(Kept::For(MERGED_MS))
            }
            _ => Err("is of no known kind, or of one that may not be left".into()),
        }
    }

    fn count_of_job(&mut self, id: JobId, kind: Option<&str>, facts: &Facts) -> Result<Kept, String> {
        let entry = facts.jobs.get(&id).ok_or("is of no job that was enqueued")?;
        let is_dead = facts.dead.contains_key(&id);
        match (kind, entry.end) {
            (None, _) if is_dead => self.rows += 1,
            (Some("logs"), End::Dead { .. } | End::Any) if is_dead => self.others += 1,
            (Some("result"), End::Done | End::DoneOrExpired | End::Any) if !is_dead => {
                self.results += 1;
                return Ok(Kept::For(60_000));
            }
            _ => return Err(format!("is left of a job that was to come to {:?}", entry.end)),
        }
        Ok(Kept::ForEver)
    }
}
