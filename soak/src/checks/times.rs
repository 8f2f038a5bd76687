//! No job begins before its time: after a delay, a snooze, or a lane that was told to wait.

use std::time::Duration;

use emq::JobId;

use super::Violation;
use crate::{
    event::What,
    facts::Facts,
    jobs::{QUEUE, SNOOZE, TOO_OFTEN},
    ledger::unix_ms,
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (id, entry) in facts.of_queue(QUEUE) {
        let due = unix_ms(id.minted_at()) + ms(entry.not_before);
        if let Some(begin) = facts.all(id, What::Begin).find(|begin| begin.time < due) {
            wrong.push(Violation::of(id, format!("{id} was due at {due}, and began at {}", begin.time)));
        }
        for (what, wait) in [(What::Snooze, SNOOZE), (What::Limited, TOO_OFTEN)] {
            wrong.extend(too_early(facts, id, what, wait).map(|what| Violation::of(id, what)));
        }
    }
    wrong
}

/// A run that begins before the one before it wanted.
///
/// If that one couldn't say so before its lease ran out, the next one comes earlier. Then it is counted as a stall.
fn too_early(facts: &Facts, id: JobId, what: What, wait: Duration) -> impl Iterator<Item = String> {
    facts.all(id, what).filter_map(move |waits| {
        let begin = |fence| facts.all(id, What::Begin).find(|begin| begin.fence == fence);
        let (this, next) = (begin(waits.fence)?, begin(waits.fence + 1)?);
        let early = next.number == this.number && next.time < waits.time + ms(wait);
        early.then(|| format!("{id} was to wait for {wait:?} from {}, and began at {}", waits.time, next.time))
    })
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
