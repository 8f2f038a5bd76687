//! Nothing starts from when a pause has been acknowledged until it is asked to end.

use super::Violation;
use crate::{book::Paused, event::What, facts::Facts, ledger::unix_ms};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    facts.pauses.iter().flat_map(|paused| of_pause(facts, paused)).collect()
}

fn of_pause(facts: &Facts, paused: &Paused) -> Vec<Violation> {
    let Paused { queue, lane, from, to, started } = paused;
    let in_lane = |entry: Option<Option<&'static str>>| lane.is_none() || entry.flatten() == *lane;
    let seen = started.iter().filter(|id| in_lane(facts.jobs.get(id).map(|entry| entry.lane)));
    let mut wrong: Vec<_> =
        seen.map(|id| Violation::of(*id, format!("{id} became active while {paused} was paused"))).collect();
    // What begins may have been claimed before. What came after the pause can't.
    let late = facts.of_queue(queue).filter(|(id, entry)| {
        let minted = unix_ms(id.minted_at());
        in_lane(Some(entry.lane)) && minted > *from && minted < *to
    });
    for (id, _) in late {
        if let Some(begin) = facts.all(id, What::Begin).find(|begin| begin.time < *to) {
            let what = format!("{id} came and began while {paused} was paused, at {}", begin.time);
            wrong.push(Violation::of(id, what));
        }
    }
    wrong
}
