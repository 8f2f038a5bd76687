//! What is printed at the end.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    time::Duration,
};

use emq::{BoxError, Client, JobId};

use crate::{
    book::{Book, Entry, Taken},
    census::Census,
    checks::{Violation, most_stays},
    event::{Event, What},
    facts::Facts,
    jobs::{QUEUE, SCRAP},
    ledger::{Ledger, Told, unix_ms},
    memory::{Look, Server},
    strikes::Strike,
};

/// How many violations are printed with the history of their jobs.
const SHOWN: usize = 20;

/// Prints each violation, and what happened to its job meanwhile.
pub(crate) async fn histories(
    violations: &[Violation],
    facts: &Facts,
    ledger: &Ledger,
    client: &Client,
) -> Result<(), BoxError> {
    let strikes = ledger.strikes().await?;
    for violation in violations.iter().take(SHOWN) {
        println!("soak: VIOLATION: {}", violation.what);
        let Some(id) = violation.job else { continue };
        match facts.jobs.get(&id) {
            Some(entry) => println!("    {id} was enqueued: {entry:?}"),
            None => println!("    {id} was never enqueued, as far as the producers know"),
        }
        if let Some(taken) = facts.taken.get(&id) {
            println!("    {id} was {taken:?}");
        }
        for line in history(id, facts.events(id), &strikes) {
            println!("    {line}");
        }
        let queue = client.queue(facts.jobs.get(&id).map_or(QUEUE, Entry::queue))?;
        match (queue.get(id).await?, queue.state(id).await?) {
            (Some(stored), _) => println!("    at the end the server has {stored:?}"),
            (None, state) => println!("    at the end the server says {state:?}"),
        }
    }
    if violations.len() > SHOWN {
        println!("soak: and {} more", violations.len() - SHOWN);
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
    pub(crate) facts: &'a Facts,
    pub(crate) violations: usize,
    pub(crate) book: &'a Book,
    pub(crate) told: Told,
    pub(crate) census: &'a Census,
    pub(crate) strikes: &'a BTreeMap<Strike, u64>,
    pub(crate) looks: &'a [Look],
    /// At the start and at the end.
    pub(crate) server: [Server; 2],
}

impl Summary<'_> {
    /// Each line: what, how many, and a remark.
    fn lines(&self) -> Vec<(&'static str, u64, String)> {
        let Self { facts, book, told, census, .. } = self;
        let strikes: Vec<String> = self.strikes.iter().map(|(strike, times)| format!("{strike:?} {times}")).collect();
        let noted = |what| facts.events.values().flatten().filter(|event| event.what == what).count() as u64;
        let (runs, slots) = (noted(What::Begin), facts.slots.iter().map(|slot| &slot.job).collect::<HashSet<_>>());
        let counted = |counter| Book::counted(counter);
        let (all, scrap) = (facts.jobs.len(), facts.of_queue(SCRAP).count());
        let keys = census.rows + census.results + census.nodes + census.others;
        let started = facts.events.len() as u64;
        vec![
            ("strikes", self.strikes.values().sum(), strikes.join(", ")),
            ("accepted", all as u64, format!("{scrap} of them may be thrown away, {} are of slots", slots.len())),
            ("duplicates", counted(&book.duplicates), "of a deduplication key".into()),
            ("replaced", counted(&book.replaced), "did the work of another, and that nothing".into()),
            ("parked", counted(&book.parked), "behind a job that ran".into()),
            ("left unknown", counted(&book.unknown), "or refused, and sent again under their ids".into()),
            ("sent again", counted(&book.repeats), "though accepted".into()),
            ("done", facts.counts.completed + facts.scrap.completed, String::new()),
            ("dead", facts.dead.len() as u64, format!("{} of them have expired", facts.expired(QUEUE))),
            ("removed", facts.taken_so(Taken::Removed), "while they waited, or dead".into()),
            (
                "cancelled",
                facts.taken_so(Taken::Cancelled),
                format!("{} cancellations met one that ran", counted(&book.interrupted)),
            ),
            ("thrown away", counted(&book.scrapped), "drained and purged".into()),
            ("waiting", facts.counts.unfinished() + facts.scrap.unfinished(), String::new()),
            ("revived", counted(&book.revived), "dead letters, that died again".into()),
            ("pauses", facts.pauses.len() as u64, "of a queue or a lane".into()),
            ("runs", runs, format!("{} of them not the first of their job", runs.saturating_sub(started))),
            ("stays", noted(What::Left), format!("at most {}", most_stays(facts).join(", "))),
            ("found done", noted(What::FoundDone), "runs that found the effect of an earlier one".into()),
            ("overtaken", noted(What::Overtaken), "effects withheld: a newer run had begun".into()),
            ("reports", noted(What::RefusedLate), "of overtaken runs that were refused".into()),
            ("dropped in time", told.lost, "by workers that lost the lease, as far as they could tell".into()),
            ("refused", told.stale, format!("late settlements; {} were given up", told.unsettled)),
            ("ghosts", counted(&book.haunted), "writes under old tokens that were refused".into()),
            (
                "keys",
                keys,
                format!(
                    "{} rows, {} results, {} nodes, {} others; {} claims noted",
                    census.rows, census.results, census.nodes, census.others, census.claims
                ),
            ),
            ("violations", self.violations as u64, String::new()),
        ]
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "soak: seed {}, {} s", self.seed, self.took.as_secs())?;
        for (what, number, remark) in self.lines() {
            let line = format!("  {what:<16}{number:>8}   {remark}");
            writeln!(f, "{}", line.trim_end())?;
        }
        let Told { workers, claimed, released, reconnects, .. } = self.told;
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
