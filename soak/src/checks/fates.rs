//! Each job has come to what it was meant to come to.

use emq::{JobId, Stored};

use super::Violation;
use crate::{
    book::{Entry, Taken},
    facts::{Dead, Facts},
    jobs::{End, QUEUE},
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let fates = facts.of_queue(QUEUE).flat_map(|(id, entry)| {
        let dead = fate(facts, id, entry);
        effect(facts, id, entry).into_iter().chain(dead).chain(mark(facts, id, entry))
    });
    let mut wrong: Vec<_> =
        fates.map(|(id, what)| Violation::of(id, format!("{id} ({}) {what}", facts.jobs[&id].what))).collect();
    let strangers = facts.events.keys().chain(facts.dead.keys()).filter(|id| !facts.jobs.contains_key(id));
    wrong.extend(strangers.map(|id| Violation::of(*id, format!("{id} has run or died, and was never enqueued"))));
    for (id, most) in &facts.last_tokens {
        let newest = facts.newest_token(*id);
        if newest > *most {
            let what = format!("{id} was cancelled when its token was {most}, and has run under {newest}");
            wrong.push(Violation::of(*id, what));
        }
    }
    wrong
}

/// It has had its effect as often as it should.
fn effect(facts: &Facts, id: JobId, entry: &Entry) -> Option<(JobId, String)> {
    let times = facts.effects.get(&id).copied().unwrap_or(0);
    let wanted = match (entry.end, facts.taken.get(&id)) {
        (End::Done, None) => 1..=1,
        // A run may have had it before the job was taken away.
        (End::Done, Some(_)) | (End::Any, _) => 0..=1,
        (End::DoneOrExpired, _) if facts.dead.contains_key(&id) => 0..=0,
        (End::DoneOrExpired, _) => 1..=1,
        (End::Discarded | End::Dead { .. }, _) => 0..=0,
    };
    let least = wanted.start();
    (!wanted.contains(&times)).then(|| (id, format!("had its effect {times} times, and not {least}")))
}

/// It is a dead letter if it should be, after so many failures.
fn fate(facts: &Facts, id: JobId, entry: &Entry) -> Option<(JobId, String)> {
    let taken = facts.taken.get(&id);
    let what = match (facts.dead.get(&id), entry.end) {
        (Some(_), _) if matches!(taken, Some(Taken::Removed | Taken::Cancelled)) => {
            format!("is dead, and was {taken:?}")
        }
        (Some(Dead { stored, .. }), End::Dead { failures }) => {
            let Stored { failures: has, attempts, .. } = stored;
            let newest = facts.newest_token(id);
            if *has != failures {
                format!("is dead after {has} failures, and not {failures}")
            } else if *attempts < newest {
                format!("has run under {newest}, and was claimed {attempts} times")
            } else {
                return None;
            }
        }
        (Some(dead), End::DoneOrExpired) if dead.has_expired() => {
            if facts.events(id).is_empty() {
                return None;
            }
            "has expired, though a run had begun".into()
        }
        (Some(dead), End::Done | End::Discarded | End::DoneOrExpired) => {
            format!("is dead, and was to succeed: {:?}", dead.stored.last_error)
        }
        (None, End::Dead { .. }) if taken.is_none() => "isn't dead, and was to be".into(),
        _ => return None,
    };
    Some((id, what))
}

/// Its last run has done what the last enqueue that it was merged with has asked for.
fn mark(facts: &Facts, id: JobId, entry: &Entry) -> Option<(JobId, String)> {
    use crate::event::What;
    let wanted = entry.mark?;
    let last = facts.all(id, What::Mark).max_by_key(|event| event.fence).map(|event| event.number);
    (last != Some(wanted)).then(|| (id, format!("was to do {wanted} at last, and its last run did {last:?}")))
}
