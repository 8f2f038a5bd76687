//! Of the jobs with one key, each has begun after the one before it had its effect, or longer after it; and who is called a
//! holder is one.
//!
//! A job that was taken away has let go of its key, though somebody who had lost it may still have been at it.

use std::collections::BTreeMap;

use super::Violation;
use crate::{
    event::What,
    facts::Facts,
    jobs::QUEUE,
    keys::{Key, Mode},
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut by_key: BTreeMap<&str, (Mode, Vec<_>)> = BTreeMap::new();
    for (id, entry) in facts.of_queue(QUEUE).filter(|(id, _)| !facts.taken.contains_key(id)) {
        let Some(Key { name, mode }) = entry.key.as_ref().filter(|key| key.mode.excludes()) else { continue };
        if let (Some(first), Some(effect)) = (facts.events(id).first(), facts.all(id, What::Effect).next()) {
            let spans = &mut by_key.entry(name).or_insert((*mode, Vec::new())).1;
            spans.push((first.seq, first.time, effect.seq, effect.time, id));
        }
    }
    for (key, (mode, mut spans)) in by_key {
        spans.sort_unstable();
        let rest = i64::try_from(mode.rest().as_millis()).unwrap_or(0);
        for pair in spans.windows(2) {
            let [(_, _, effect, ended, earlier), (begin, began, _, _, later)] = pair else { continue };
            if begin < effect {
                wrong.push(Violation::of(*later, format!("{earlier} and {later} had the key {key} at once")));
                wrong.push(Violation::of(*earlier, format!("{earlier} is the other one")));
            } else if *began < ended + rest {
                let what = format!("{later} began {} ms after {earlier}, which keeps {key} for {rest}", began - ended);
                wrong.push(Violation::of(*later, what));
            }
        }
    }
    for (key, holder) in &facts.holders {
        if facts.jobs.get(holder).is_none_or(|entry| entry.key.as_ref() != Some(key)) {
            wrong.push(Violation::of(*holder, format!("{holder} was named as the holder of {key:?}, and isn't")));
        }
    }
    wrong
}
