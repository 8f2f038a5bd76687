//! No lane and no queue ever had more runs at once than its limit allows, of those that surely had a slot: see `stay.rs`.

use std::collections::{BTreeMap, HashMap};

use emq::JobId;

use super::Violation;
use crate::{
    book::Entry,
    event::{Event, What},
    facts::Facts,
    jobs::{QUEUE, SCRAP},
    lanes::{LANES, SCRAP_LIMIT},
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let over = limited(facts).into_iter().filter(|limited| limited.most.len() > limited.limit as usize);
    over.map(|Limited { name, limit, most }| {
        let all: Vec<String> = most.iter().map(|(id, fence)| format!("{id} under {fence}")).collect();
        let what = format!("{name} may have {limit} runs at once, and had {}: {}", most.len(), all.join(", "));
        Violation { job: most.first().map(|(id, _)| *id), what }
    })
    .collect()
}

/// For each limit: how many runs there were at once, of how many that may be.
pub(crate) fn most(facts: &Facts) -> Vec<String> {
    limited(facts)
        .into_iter()
        .map(|Limited { name, limit, most }| format!("{name} {} of {limit}", most.len()))
        .collect()
}

struct Limited {
    name: String,
    limit: u32,
    /// The runs at the time when there were the most.
    most: Vec<(JobId, u64)>,
}

fn limited(facts: &Facts) -> Vec<Limited> {
    let lanes = [QUEUE, SCRAP].into_iter().flat_map(|queue| {
        let limited = LANES.into_iter().filter_map(move |lane| Some((queue, Some(lane.name), lane.limit?)));
        limited.chain((queue == SCRAP).then_some((queue, None, SCRAP_LIMIT)))
    });
    lanes
        .map(|(queue, lane, limit)| {
            let is_in = |entry: &Entry| lane.is_none() || entry.lane == lane;
            let stays = facts.of_queue(queue).filter(|(_, entry)| is_in(entry));
            let stays = stays.flat_map(|(id, _)| of_job(id, facts.events(id)));
            let name = lane.map_or(queue.to_owned(), |lane| format!("{queue}/{lane}"));
            Limited { name, limit, most: at_once(stays.collect()) }
        })
        .collect()
}

/// A run, and between which lines of the ledger it surely had a slot.
#[derive(Debug)]
struct Stay {
    run: (JobId, u64),
    from: i64,
    to: i64,
}

fn of_job(id: JobId, events: &[Event]) -> Vec<Stay> {
    let mut by_token: HashMap<u64, [Option<i64>; 3]> = HashMap::new();
    for event in events {
        let place = match event.what {
            What::Enter => 0,
            What::Leave => 1,
            What::Left => 2,
            _ => continue,
        };
        by_token.entry(event.fence).or_default()[place] = Some(event.seq);
    }
    let confirmed = by_token.into_iter().filter_map(|(fence, stay)| match stay {
        [Some(from), Some(to), Some(_)] => Some(Stay { run: (id, fence), from, to }),
        _ => None,
    });
    confirmed.collect()
}

/// The most that there ever were at once.
fn at_once(stays: Vec<Stay>) -> Vec<(JobId, u64)> {
    let mut steps: BTreeMap<i64, (bool, (JobId, u64))> = BTreeMap::new();
    for Stay { run, from, to } in stays {
        steps.insert(from, (true, run));
        steps.insert(to, (false, run));
    }
    let (mut now, mut most) = (Vec::new(), Vec::new());
    for (enters, run) in steps.into_values() {
        if enters {
            now.push(run);
        } else {
            now.retain(|other| *other != run);
        }
        if now.len() > most.len() {
            most.clone_from(&now);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: i64, fence: u64, what: What) -> Event {
        Event { seq, time: seq, job: String::new(), fence, pid: 1, what, number: 0 }
    }

    #[test]
    fn runs_that_are_confirmed_are_counted_while_they_last() {
        let id = |n: u32| format!("JOB0000000000{n}").parse::<JobId>().unwrap();
        let stay = |from, to, fence| {
            [(from, What::Enter), (to, What::Leave), (to + 1, What::Left)].map(|(s, w)| event(s, fence, w))
        };
        let of = |n, events: &[Event]| of_job(id(n), events);
        let apart = [of(1, &stay(1, 2, 1)), of(2, &stay(4, 7, 1))];
        assert_eq!(at_once(apart.into_iter().flatten().collect()).len(), 1);
        let together = [of(1, &stay(1, 5, 1)), of(2, &stay(2, 7, 3)), of(3, &stay(10, 12, 1))];
        assert_eq!(at_once(together.into_iter().flatten().collect()), [(id(1), 1), (id(2), 3)]);
        // Who wasn't told that it holds its job still may have lost it long before.
        let lost = [of(1, &stay(1, 5, 1)[..2]), of(2, &stay(2, 7, 3))];
        assert_eq!(at_once(lost.into_iter().flatten().collect()).len(), 1);
    }
}
