//! How often each outcome came up, to see that random sequences reach them all.

use std::collections::BTreeMap;

use emq::{Extended, Settled};

use crate::answer::{Admitted, Answer};
use crate::model::Model;
use crate::verb::{EXCHANGER, LOG_LINES, Lane, Repeat, Settling, Verb};

#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, usize>);

/// What must come up in a run of some hundred sequences.
const EXPECTED: &[&str] = &[
    "enqueue New",
    "enqueue Duplicate",
    "enqueue Conflict",
    "enqueue Replaced",
    "enqueue Parked",
    "a parked job that goes on",
    "a key that outlives its job",
    "claim of a job",
    "claim of nothing",
    "claim, lost",
    "complete Accepted",
    "complete Repeated",
    "complete Stale",
    "complete Gone",
    "retry Accepted",
    "retry Repeated",
    "retry Stale",
    "retry Gone",
    "bury Accepted",
    "bury Repeated",
    "bury Stale",
    "bury Gone",
    "snooze Accepted",
    "snooze Repeated",
    "snooze Stale",
    "snooze Gone",
    "hold Accepted",
    "hold Repeated",
    "hold Stale",
    "hold Gone",
    "release Accepted",
    "release Repeated",
    "release Stale",
    "release Gone",
    "extend Renewed",
    "extend Lost",
    "promote",
    "reap back",
    "reap to the dead",
    "revive Revived",
    "revive NotDead",
    "revive Gone",
    "cancel AtOnce",
    "cancel Asked",
    "cancel Gone",
    "cancel_held Accepted",
    "cancel_held Repeated",
    "cancel_held Stale",
    "cancel_held Gone",
    "complete Cancelled",
    "retry Cancelled",
    "release Cancelled",
    "extend Cancelled",
    "reap of the cancelled",
    "update Updated",
    "update Active",
    "update Dead",
    "update Gone",
    "remove Removed",
    "remove Active",
    "remove Gone",
    "trim of the finished",
    "trim of the dead",
    "claim of the expired",
    "a lane that is held back",
    "a turn that goes on",
    "a lane at its limit",
    "two lanes in the ring",
    "reassign Reassigned",
    "reassign Active",
    "reassign Gone",
    "drain of a lane",
    "exchange Accepted",
    "exchange Repeated",
    "exchange Stale",
    "exchange Gone",
    "exchange Cancelled",
    "exchange, lost",
    "progress OK",
    "progress STALE",
    "log OK",
    "log STALE",
    "log DONE",
    "a log at its limit",
    "purge",
    "obliterate",
    "obliterate Active",
    "upsert CREATED",
    "upsert CHANGED",
    "upsert UNCHANGED",
    "pause OK",
    "pause GONE",
    "resume OK",
    "resume STALE",
    "resume GONE",
    "remove OK",
    "remove STALE",
    "remove GONE",
    "fire FIRED 0",
    "fire FIRED 1",
    "fire FIRED 3",
    "fire HELD",
    "fire STALE",
    "fire TAKEN ",
    "fire GONE",
];

impl Tally {
    pub(crate) fn count(&mut self, verb: &Verb, answer: &Answer) {
        match (verb, answer) {
            (_, Answer::Enqueued(jobs)) => {
                for job in jobs {
                    self.add(match job {
                        Admitted::New => "enqueue New",
                        Admitted::Duplicate(_) => "enqueue Duplicate",
                        Admitted::Conflict(_) => "enqueue Conflict",
                        Admitted::Replaced(_) => "enqueue Replaced",
                        Admitted::Parked(_) => "enqueue Parked",
                    });
                }
            }
            (Verb::Claim { lost: true, .. }, _) => self.add("claim, lost"),
            (Verb::Exchange { lost: true, .. }, _) => self.add("exchange, lost"),
            (Verb::Exchange { lease, .. }, Answer::Exchanged(settled, claimed)) => {
                settled.iter().for_each(|settled| self.settled("exchange", *settled));
                let claim = Verb::Claim { worker: EXCHANGER, max: 0, lease: *lease, lost: false };
                self.count(&claim, claimed);
            }
            (_, Answer::Words(words)) => words.iter().for_each(|word| self.add(&format!("{} {word}", named(verb)))),
            (_, Answer::Purged(1..)) => self.add("purge"),
            (_, Answer::Obliterated(jobs)) => self.add(if jobs.is_some() { "obliterate" } else { "obliterate Active" }),
            (_, Answer::Claimed { jobs, expired, .. }) => {
                self.add(if jobs.is_empty() { "claim of nothing" } else { "claim of a job" });
                (0..*expired).for_each(|_| self.add("claim of the expired"));
            }
            (_, Answer::Reassigned(reassigned)) => self.add(&format!("reassign {reassigned:?}")),
            (_, Answer::Drained { deleted: 1.., .. }) => self.add("drain of a lane"),
            (Verb::Complete(_), Answer::Settled(settled)) => self.settled("complete", *settled),
            (Verb::Settle { how, .. }, Answer::Settled(settled)) => {
                let verb = match how {
                    Settling::Retry { .. } => "retry",
                    Settling::Bury { .. } => "bury",
                    Settling::Snooze { .. } => "snooze",
                    Settling::Hold { .. } => "hold",
                    Settling::Cancel => "cancel_held",
                    Settling::Release => "release",
                };
                self.settled(verb, *settled);
            }
            (_, Answer::Extended(extended)) => {
                let lost = extended.iter().filter(|one| **one == Extended::Lost).count();
                (0..lost).for_each(|_| self.add("extend Lost"));
                let cancelled = extended.iter().filter(|one| **one == Extended::Cancelled).count();
                (0..cancelled).for_each(|_| self.add("extend Cancelled"));
                (lost + cancelled..extended.len()).for_each(|_| self.add("extend Renewed"));
            }
            (_, Answer::Promoted(1..)) => self.add("promote"),
            (_, Answer::Cancelled(cancelled)) => self.add(&format!("cancel {cancelled:?}")),
            (_, Answer::Updated(updated)) => self.add(&format!("update {updated:?}")),
            (_, Answer::Reaped { recovered, dead, cancelled }) => {
                cancelled.iter().for_each(|_| self.add("reap of the cancelled"));
                recovered.iter().for_each(|_| self.add("reap back"));
                dead.iter().for_each(|_| self.add("reap to the dead"));
            }
            (_, Answer::Revived(revived)) => self.add(&format!("revive {revived:?}")),
            (_, Answer::Removed(removed)) => self.add(&format!("remove {removed:?}")),
            (_, Answer::Trimmed { forgotten, dead, .. }) => {
                (0..*forgotten).for_each(|_| self.add("trim of the finished"));
                (0..*dead).for_each(|_| self.add("trim of the dead"));
            }
            _ => {}
        }
    }

    /// Where a verb has led to.
    pub(crate) fn state(&mut self, model: &Model) {
        let waits = |lane: &Lane| !model.waiting(Some(*lane)).is_empty();
        let at_limit =
            |lane: &Lane| model.settings(*lane).concurrency.is_some_and(|limit| model.running(*lane) >= limit as usize);
        for (label, is_so) in [
            ("a lane that is held back", Lane::all().filter(waits).any(|lane| model.settings(lane).held.is_some())),
            ("a turn that goes on", model.turn.as_ref().is_some_and(|turn| turn.credit.is_some())),
            ("a lane at its limit", Lane::all().filter(waits).any(|lane| at_limit(&lane) && model.running(lane) > 0)),
            ("two lanes in the ring", model.ring.len() > 1),
            ("a key that outlives its job", model.keys.values().any(|holding| holding.until.is_some())),
            ("a log at its limit", model.jobs.values().any(|job| job.log.len() == LOG_LINES)),
            ("a parked job that goes on", model.jobs.values().any(|job| job.behind.is_some() && job.attempts > 0)),
        ] {
            if is_so {
                self.add(label);
            }
        }
    }

    /// What should have come up and hasn't.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        EXPECTED.iter().filter(|label| !self.0.contains_key(**label)).copied().collect()
    }

    fn settled(&mut self, verb: &str, settled: Settled) {
        self.add(&format!("{verb} {settled:?}"));
    }

    fn add(&mut self, label: &str) {
        *self.0.entry(label.to_owned()).or_default() += 1;
    }
}

/// What a verb is called whose answer is words.
fn named(verb: &Verb) -> &'static str {
    match verb {
        Verb::Progress { .. } => "progress",
        Verb::Log { .. } => "log",
        Verb::Repeat(Repeat::Upsert { .. }) => "upsert",
        Verb::Repeat(Repeat::Pause(_)) => "pause",
        Verb::Repeat(Repeat::Resume { .. }) => "resume",
        Verb::Repeat(Repeat::Remove { .. }) => "remove",
        Verb::Repeat(Repeat::Fire(_)) => "fire",
        _ => "logs",
    }
}
