//! What is printed at the end.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::atomic::Ordering,
    time::Duration,
};

use emq::{BoxError, Client, JobId};

use crate::{
    book::{Book, Entry},
    census::Census,
    jobs::QUEUE,
    ledger::{Event, Ledger, Told, unix_ms},
    memory::{Look, Server},
    strikes::Strike,
    verdict::Verdict,
};

/// How many violations are printed with the history of their jobs.
const SHOWN: usize = 20;

/// Prints each violation, and what happened to its job meanwhile.
pub(crate) async fn histories(
    verdict: &Verdict,
    ledger: &Ledger,
    jobs: &HashMap<JobId, Entry>,
    client: &Client,
) -> Result<(), BoxError> {
    let (queue, strikes) = (client.queue(QUEUE)?, ledger.strikes().await?);
    for violation in verdict.violations.iter().take(SHOWN) {
        println!("soak: VIOLATION: {}", violation.what);
        let Some(id) = violation.job.as_ref().and_then(|job| job.parse::<JobId>().ok()) else { continue };
        match jobs.get(&id) {
            Some(entry) => println!("    {id} was enqueued: {entry:?}"),
            None => println!("    {id} was never enqueued, as far as the producers know"),
        }
        for line in history(id, verdict.events.get(id.as_str()).map_or(&[], Vec::as_slice), &strikes) {
            println!("    {line}");
        }
        match queue.get(id).await? {
            Some(stored) => println!("    at the end the server has {stored:?}"),
            None => println!("    at the end the server doesn't know it"),
        }
    }
    if verdict.violations.len() > SHOWN {
        println!("soak: and {} more", verdict.violations.len() - SHOWN);
    }
    Ok(())
}

/// The events of a job, and the strikes since shortly before it was minted until its last event, or for a while.
fn history(id: JobId, events: &[Event], strikes: &[(i64, String)]) -> Vec<String> {
    let minted = unix_ms(id.minted_at());
    let last = events.last().map_or(minted + 10_000, |event| event.time);
    let meanwhile = strikes.iter().filter(|(time, _)| (minted - 5_000..=last).contains(time));
    let mut lines: Vec<_> = meanwhile.map(|(time, what)| (*time, format!("{time} strike: {what}"))).collect();
    lines.push((minted, format!("{minted} it was minted")));
    lines.extend(events.iter().map(|event| (event.time, event.to_string())));
    lines.sort_by_key(|(time, _)| *time);
    lines.into_iter().map(|(_, line)| line).collect()
}

pub(crate) struct Summary<'a> {
    pub(crate) seed: u64,
    pub(crate) took: Duration,
    pub(crate) verdict: &'a Verdict,
    pub(crate) book: &'a Book,
    pub(crate) told: Told,
    pub(crate) census: &'a Census,
    pub(crate) strikes: &'a BTreeMap<Strike, u64>,
    pub(crate) looks: &'a [Look],
    /// At the start and at the end.
    pub(crate) server: [Server; 2],
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verdict, told, census, .. } = self;
        let strikes: Vec<String> = self.strikes.iter().map(|(strike, times)| format!("{strike:?} {times}")).collect();
        let lines: [(&str, u64, String); 19] = [
            ("strikes", self.strikes.values().sum(), strikes.join(", ")),
            ("accepted", verdict.accepted, String::new()),
            ("duplicates", verdict.duplicates, "of a deduplication key".into()),
            (
                "left unknown",
                self.book.unknown.load(Ordering::Relaxed),
                "or refused, and sent again under their ids".into(),
            ),
            ("sent again", self.book.repeats.load(Ordering::Relaxed), "though accepted".into()),
            ("done", verdict.counts.completed, String::new()),
            ("dead", verdict.counts.dead, format!("{} of them have expired", verdict.expired)),
            ("removed", verdict.removed, "while they waited, or dead".into()),
            ("waiting", verdict.waiting, String::new()),
            ("revived", self.book.revived.load(Ordering::Relaxed), "dead letters, that died again".into()),
            ("runs", verdict.runs, format!("{} of them not the first of their job", verdict.repeated_runs)),
            ("found done", verdict.found_done, "runs that found the effect of an earlier one".into()),
            ("overtaken", verdict.overtaken, "effects withheld: a newer run had begun".into()),
            ("begun late", verdict.late_begins, "runs that began after a newer one had".into()),
            ("dropped in time", told.lost, "by workers that lost the lease, as far as they could tell".into()),
            ("refused", told.stale, format!("late settlements; {} were given up", told.unsettled)),
            ("ghosts", self.book.haunted.load(Ordering::Relaxed), "writes under old tokens that were refused".into()),
            (
                "keys",
                census.rows + census.results + census.nodes + census.others,
                format!(
                    "{} rows, {} results, {} nodes, {} others; {} claims noted",
                    census.rows, census.results, census.nodes, census.others, census.claims
                ),
            ),
            ("violations", verdict.violations.len() as u64, String::new()),
        ];
        writeln!(f, "soak: seed {}, {} s", self.seed, self.took.as_secs())?;
        for (what, number, remark) in lines {
            let line = format!("  {what:<16}{number:>8}   {remark}");
            writeln!(f, "{}", line.trim_end())?;
        }
        let Told { workers, claimed, released, reconnects, .. } = told;
        writeln!(
            f,
            "  {workers} workers told of {claimed} claims, {released} jobs given back and {reconnects} reconnects"
        )?;
        let [before, after] = self.server;
        write!(f, "  the server's data took {} KiB, and take {} KiB for {} keys", before.data, after.data, after.keys)?;
        if let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) {
            write!(f, "; worker 0 took {} KiB, and {} KiB {} runs later", first.resident, last.resident, last.runs)?;
        }
        writeln!(f)?;
        Ok(())
    }
}
