//! The recurring jobs, and whether each of their slots has had one job.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use emq::{MAX_BACKFILL, Missed, Queue, Recurrence, RecurringError, Schedule, Upserted};
use tokio::time::sleep;

use crate::{book::Book, event::Slot, jobs::TickJob, ledger::unix_ms, operator::is_passing};

/// The wait between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// By period and by cron: the names, and the ms from one slot to the next.
const RECURRING: [(&str, i64); 2] = [("every", 700), ("cron", 2_000)];

fn schedule(name: &str, period: i64) -> Schedule {
    match name {
        "cron" => Schedule::cron(format!("*/{} * * * * *", period / 1_000)),
        _ => Schedule::every(Duration::from_millis(period.unsigned_abs())),
    }
}

/// Registers all of them; again, it is to change nothing.
pub(crate) async fn register(queue: &Queue, book: &Book, expected: Upserted) -> Result<(), RecurringError> {
    for (name, period) in RECURRING {
        // However long all workers are away, no slot is to be left out.
        let recurrence = Recurrence::new(schedule(name, period)).missed(Missed::Backfill(MAX_BACKFILL));
        let upserted = queue.recurring().upsert(name, recurrence, TickJob { name: name.into() }).await?;
        if upserted != expected {
            book.violation(format!("the recurring job {name} is registered again, and {upserted:?}"));
        }
    }
    Ok(())
}

/// Removes all of them, and returns the last slot that each of them has had.
pub(crate) async fn remove(queue: &Queue) -> Result<BTreeMap<&'static str, Option<i64>>, RecurringError> {
    let mut last = BTreeMap::new();
    let recurring = queue.recurring();
    for (name, _) in RECURRING {
        loop {
            let removed = async {
                let known = recurring.get(name).await?;
                recurring.remove(name).await?;
                Ok(known)
            };
            match removed.await {
                Ok(known) => {
                    last.insert(name, known.and_then(|known| known.last).map(unix_ms));
                    break;
                }
                Err(RecurringError::Call(error)) if is_passing(&error) => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(last)
}

/// What is wrong with the slots that jobs have run for, and the job that it is about.
pub(crate) fn check(slots: &[Slot], last: &BTreeMap<&'static str, Option<i64>>) -> Vec<(Option<String>, String)> {
    let mut wrong = Vec::new();
    for (name, period) in RECURRING {
        let mut jobs: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for slot in slots.iter().filter(|slot| slot.name == name) {
            jobs.entry(slot.at).or_default().insert(&slot.job);
        }
        for (at, jobs) in jobs.iter().filter(|(_, jobs)| jobs.len() > 1) {
            wrong.push((jobs.first().map(|job| (*job).to_owned()), format!("the slot {at} of {name} has {jobs:?}")));
        }
        let times: Vec<i64> = jobs.keys().copied().collect();
        for pair in times.windows(2).filter(|pair| pair[1] - pair[0] != period) {
            let after = jobs[&pair[1]].first().map(|job| (*job).to_owned());
            wrong.push((after, format!("{name} has no slot between {} and {}", pair[0], pair[1])));
        }
        let ended = last.get(name).copied().flatten();
        if times.last().copied() < ended {
            wrong.push((None, format!("{name} had the slot {ended:?}, and its last job ran for {:?}", times.last())));
        }
        if times.is_empty() {
            wrong.push((None, format!("{name} never ran")));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn slots(name: &str, times: impl IntoIterator<Item = i64>) -> Vec<Slot> {
        times.into_iter().map(|at| Slot { name: name.into(), at, job: format!("job of {at}") }).collect()
    }

    fn all() -> Vec<Slot> {
        [slots("every", (0..10).map(|k| 5 + 700 * k)), slots("cron", (0..4).map(|k| 2_000 * k))].concat()
    }

    #[test]
    fn a_slot_that_is_left_out_or_doubled_is_found() {
        let last = BTreeMap::from([("every", Some(5 + 700 * 9)), ("cron", Some(6_000))]);
        assert_eq!(check(&all(), &last), []);
        let mut missing = all();
        missing.remove(4);
        assert_eq!(check(&missing, &last).len(), 1);
        let mut doubled = all();
        doubled.push(Slot { job: "another".into(), ..doubled[3].clone() });
        assert_eq!(check(&doubled, &last).len(), 1);
        let mut cut = all();
        cut.pop();
        assert_eq!(check(&cut, &last).len(), 1);
        assert_eq!(check(&slots("every", [0]), &BTreeMap::new()).len(), 1);
    }

    #[test]
    fn the_periods_are_those_of_the_schedules() {
        for (name, period) in RECURRING {
            let schedule = schedule(name, period);
            let first = schedule.next_after(SystemTime::UNIX_EPOCH).unwrap().unwrap();
            let slots = schedule.starting_at(first);
            let second = slots.next_after(first).unwrap().unwrap();
            assert_eq!(second.duration_since(first).unwrap().as_millis(), period.unsigned_abs().into());
        }
    }
}
