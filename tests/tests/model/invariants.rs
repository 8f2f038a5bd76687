//! What holds whatever the model says: read from the server alone, before and after a verb.

use crate::answer::Answer;
use crate::facts::Facts;
use crate::verb::{Slot, Verb};

/// The places of a job that hasn't finished: the set, and what its row says.
const PLACES: [(&str, &str); 4] =
    [("pending", "pending"), ("active", "active"), ("schedule", "scheduled"), ("dead", "dead")];

/// Says which are broken, a line each.
pub(crate) fn broken(verb: &Verb, answer: &Answer, before: &Facts, after: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    Slot::all().for_each(|slot| one_place(slot, after, &mut lines));
    Slot::all().for_each(|slot| attempts(slot, verb, before, after, &mut lines));
    Slot::all().for_each(|slot| not_lost(slot, verb, answer, before, after, &mut lines));
    members(after, &mut lines);
    expiry(after, &mut lines);
    keys(after, &mut lines);
    if answer.is_refusal() {
        unchanged(before, after, &mut lines);
    }
    marker(before, after, &mut lines);
    lines
}

/// A job has a row exactly if it stands in exactly one place, which is the one that its row names; and no id is both
/// there and remembered as finished.
fn one_place(slot: Slot, facts: &Facts, lines: &mut Vec<String>) {
    let places: Vec<_> = PLACES.into_iter().filter(|(set, _)| facts.score(set, slot).is_some()).collect();
    let row = facts.has_row(slot);
    match places[..] {
        [] if row => lines.push(format!("{slot:?} has a row and stands nowhere")),
        [(set, _)] if !row => lines.push(format!("{slot:?} stands in {set} without a row")),
        [(set, state)] if facts.field(slot, "state") != Some(state) => {
            lines.push(format!("{slot:?} stands in {set}, and its row says {:?}", facts.field(slot, "state")));
        }
        [] | [_] => {}
        _ => lines.push(format!("{slot:?} stands in several places: {places:?}")),
    }
    if row && facts.score("done", slot).is_some() {
        lines.push(format!("{slot:?} is there and remembered as finished"));
    }
}

/// The fencing token rises with a claim, by one, and never else.
fn attempts(slot: Slot, verb: &Verb, before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    let number = |facts: &Facts| facts.field(slot, "attempts").and_then(|text| text.parse::<u64>().ok());
    if let (Some(was), Some(is)) = (number(before), number(after)) {
        let may_rise = matches!(verb, Verb::Claim { .. });
        if is != was && !(may_rise && is == was + 1) {
            lines.push(format!("the attempts of {slot:?} went from {was} to {is}"));
        }
    }
}

/// A job ends in three ways: completed, removed, or trimmed as a dead letter. If anybody ever had a token of it, its id is
/// remembered then, so that the token can't be good for another job.
fn not_lost(slot: Slot, verb: &Verb, answer: &Answer, before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    if !before.has_row(slot) || after.has_row(slot) {
        return;
    }
    let ended = match verb {
        Verb::Complete { right, .. } => right.slot == slot && !answer.is_refusal(),
        Verb::Remove(removed) => *removed == slot && !answer.is_refusal(),
        Verb::Trim { .. } => before.score("dead", slot).is_some(),
        _ => false,
    };
    if !ended {
        lines.push(format!("{slot:?} is lost"));
    }
    if before.field(slot, "attempts") != Some("0") && after.score("done", slot).is_none() {
        lines.push(format!("{slot:?} was claimed once, and its id is free"));
    }
}

/// Nothing but known jobs stands in the sets.
fn members(facts: &Facts, lines: &mut Vec<String>) {
    let known: Vec<String> = Slot::all().map(|slot| format!("{slot:?}")).collect();
    let sets = ["pending", "active", "schedule", "dead", "done"];
    let strange = facts.0.keys().filter(|spot| sets.contains(&spot.key.as_str()) && !known.contains(&spot.name));
    lines.extend(strange.map(|spot| format!("a stranger: {spot}")));
}

/// Results expire, and nothing else does.
fn expiry(facts: &Facts, lines: &mut Vec<String>) {
    for spot in facts.0.keys() {
        let is_result = spot.key.starts_with("job:") && spot.key.ends_with(":result");
        let expires = facts.get(&spot.key, "(expires)", "").is_some();
        if expires != is_result {
            lines.push(format!("{} expires: {expires}", spot.key));
        }
    }
}

/// A deduplication key is held by a job that exists, was enqueued with it and hasn't died: it never has to heal.
fn keys(facts: &Facts, lines: &mut Vec<String>) {
    for (spot, holder) in facts.0.iter().filter(|(spot, _)| spot.key.starts_with("de:")) {
        let key = spot.key.trim_start_matches("de:");
        let holds = |slot: Slot| {
            format!("{slot:?}") == *holder
                && facts.field(slot, "did") == Some(key)
                && facts.score("dead", slot).is_none()
        };
        if !Slot::all().any(holds) {
            lines.push(format!("{} is held by {holder}, who has no right to it", spot.key));
        }
    }
}

/// What is refused has written nothing at all.
fn unchanged(before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    if before.0 != after.0 {
        lines.push("it was refused, and something has changed".to_owned());
    }
}

/// Whatever makes a job claimable sets the marker.
fn marker(before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    let is_new = |slot: Slot| after.score("pending", slot).is_some() && before.score("pending", slot).is_none();
    if Slot::all().any(is_new) && after.get("marker", "zset", "0").is_none() {
        lines.push("a job can be claimed by now, and nobody is woken".to_owned());
    }
}
