//! No window has more starts than the rate of its lane allows.
//!
//! A run begins some time after it was claimed. But what was minted in a window and has begun in it was claimed in it.

use super::Violation;
use crate::{
    event::What,
    facts::Facts,
    jobs::{QUEUE, SCRAP},
    lanes::{RATE, RATED},
    ledger::unix_ms,
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    [QUEUE, SCRAP].into_iter().filter_map(|queue| of_queue(facts, queue)).collect()
}

fn of_queue(facts: &Facts, queue: &str) -> Option<Violation> {
    let mut starts = Vec::new();
    for (id, _) in facts.of_queue(queue).filter(|(_, entry)| entry.lane == Some(RATED)) {
        starts.extend(facts.all(id, What::Begin).map(|begin| (unix_ms(id.minted_at()), begin.time)));
    }
    let (from, to, number, allowed) = too_many(&starts)?;
    Some(Violation::new(format!(
        "{number} jobs of {queue}/{RATED} started between {from} and {to}, and {allowed} are allowed"
    )))
}

/// A window in which more has been minted and begun than may start in it: its ends, how many, and how many may.
fn too_many(starts: &[(i64, i64)]) -> Option<(i64, i64, u64, u64)> {
    let mut by_end = starts.to_vec();
    by_end.sort_unstable_by_key(|(_, begun)| *begun);
    for (from, _) in starts {
        let mut number = 0;
        for (_, to) in by_end.iter().filter(|(minted, _)| minted >= from) {
            number += 1;
            let allowed = allowed(to - from);
            if number > allowed {
                return Some((*from, *to, number, allowed));
            }
        }
    }
    None
}

/// How many may start in so many ms, and one more for the part of a ms that is lost at both ends.
fn allowed(ms: i64) -> u64 {
    let (max, period, burst) = RATE;
    let max = (u128::from(ms.unsigned_abs()) + 1) * u128::from(max);
    u64::try_from(max.div_ceil(period.as_millis())).unwrap_or(u64::MAX) + u64::from(burst) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many jobs that are minted at once and begin this many ms apart.
    fn apart(ms: i64, count: i64) -> Vec<(i64, i64)> {
        (0..count).map(|n| (0, n * ms)).collect()
    }

    #[test]
    fn a_lane_that_is_served_faster_than_its_rate_is_found() {
        let (max, period, _) = RATE;
        let due = i64::try_from(period.as_millis()).unwrap() / i64::from(max);
        assert_eq!(too_many(&apart(due + 1, 100)), None);
        assert!(too_many(&apart(due * 9 / 10, 100)).is_some());
        // Whatever was before.
        let slow =
            apart(10 * due, 20).into_iter().chain(apart(due / 2, 12).into_iter().map(|(m, b)| (m + 9_000, b + 9_000)));
        assert!(too_many(&slow.collect::<Vec<_>>()).is_some());
    }
}
