//! What holds whatever the model says: read from the server alone, before and after a verb.

use crate::answer::Answer;
use crate::expect::line;
use crate::facts::Facts;
use crate::verb::{Lane, Settling, Shelf, Slot, Verb};

/// The places of a job that hasn't finished: the set, and what its row says.
fn places() -> impl Iterator<Item = (String, &'static str)> {
    let lanes = Lane::all().map(|lane| (line(Some(lane)), "pending"));
    let sets = [
        ("pending", "pending"),
        ("active", "active"),
        ("schedule", "scheduled"),
        ("parked", "parked"),
        ("dead", "dead"),
    ];
    lanes.chain(sets.map(|(set, state)| (set.to_owned(), state)))
}

/// Says which are broken, a line each.
pub(crate) fn broken(verb: &Verb, answer: &Answer, before: &Facts, after: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    Slot::all().for_each(|slot| one_place(slot, after, &mut lines));
    Slot::all().for_each(|slot| attempts(slot, verb, before, after, &mut lines));
    Slot::all().for_each(|slot| not_lost(slot, verb, answer, before, after, &mut lines));
    members(after, &mut lines);
    expiry(after, &mut lines);
    keys(after, &mut lines);
    Lane::all().for_each(|lane| in_the_ring(lane, after, &mut lines));
    Lane::all().for_each(|lane| slots(lane, after, &mut lines));
    if answer.is_refusal() {
        unchanged(before, after, &mut lines);
    }
    marker(before, after, &mut lines);
    lines
}

/// A job has a row exactly if it stands in exactly one place, which is the one that its row names; and no id is both
/// there and remembered as finished.
fn one_place(slot: Slot, facts: &Facts, lines: &mut Vec<String>) {
    let places: Vec<_> = places().filter(|(set, _)| facts.score(set, slot).is_some()).collect();
    let row = facts.has_row(slot);
    match &places[..] {
        [] if row => lines.push(format!("{slot:?} has a row and stands nowhere")),
        [(set, _)] if !row => lines.push(format!("{slot:?} stands in {set} without a row")),
        [(set, state)] if facts.field(slot, "state") != Some(*state) => {
            lines.push(format!("{slot:?} stands in {set}, and its row says {:?}", facts.field(slot, "state")));
        }
        [(set, "pending")] if *set != line_of(slot, facts) => {
            lines.push(format!("{slot:?} stands in {set}, and its group is {:?}", facts.field(slot, "group")));
        }
        [] | [_] => {}
        _ => lines.push(format!("{slot:?} stands in several places: {places:?}")),
    }
    if row && facts.score("done", slot).is_some() {
        lines.push(format!("{slot:?} is there and remembered as finished"));
    }
}

/// Where a job would wait.
fn line_of(slot: Slot, facts: &Facts) -> String {
    facts.field(slot, "group").map_or_else(|| "pending".to_owned(), |group| format!("g:{group}:pending"))
}

/// A lane is in the ring exactly if it can be served, and then once.
fn in_the_ring(lane: Lane, facts: &Facts, lines: &mut Vec<String>) {
    let name = format!("{lane:?}");
    let times = facts.0.iter().filter(|(spot, value)| spot.key == "ring" && **value == name).count();
    if times != usize::from(can_serve(lane, facts)) {
        lines.push(format!("{name} is {times} times in the ring"));
    }
}

fn can_serve(lane: Lane, facts: &Facts) -> bool {
    let name = format!("{lane:?}");
    let number = |key: &str| facts.get(key, "hash", &name).and_then(|text| text.parse::<usize>().ok());
    let waits = Slot::all().any(|slot| facts.score(&line(Some(lane)), slot).is_some());
    let stops = facts.get("paused", "set", &name).is_some() || facts.get("held", "zset", &name).is_some();
    waits && !stops && number("gactive").unwrap_or(0) < number("glimit").unwrap_or(usize::MAX)
}

/// As many jobs are counted as active in a lane as are, and as have a slot of it.
fn slots(lane: Lane, facts: &Facts, lines: &mut Vec<String>) {
    let name = format!("{lane:?}");
    let counted = facts.get("gactive", "hash", &name).map_or(0, |text| text.parse().unwrap_or(usize::MAX));
    let is_active = |slot: &Slot| facts.score("active", *slot).is_some() && facts.field(*slot, "group") == Some(&name);
    let active = Slot::all().filter(is_active).count();
    let owned = facts.0.iter().filter(|(spot, owner)| spot.key == "slots" && **owner == name).count();
    if (counted, owned) != (active, active) {
        lines.push(format!("{active} jobs of {name} are active, {counted} are counted, and {owned} slots taken"));
    }
}

/// The fencing token rises with a claim, by one, and never else.
fn attempts(slot: Slot, verb: &Verb, before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    let number = |facts: &Facts| facts.field(slot, "attempts").and_then(|text| text.parse::<u64>().ok());
    if let (Some(was), Some(is)) = (number(before), number(after)) {
        let may_rise = matches!(verb, Verb::Claim { .. } | Verb::Exchange { .. });
        if is != was && !(may_rise && is == was + 1) {
            lines.push(format!("the attempts of {slot:?} went from {was} to {is}"));
        }
    }
}

/// A job ends in four ways: completed, cancelled, removed, or trimmed as a dead letter. If anybody ever had a token of it, its id is
/// remembered then, so that the token can't be good for another job.
fn not_lost(slot: Slot, verb: &Verb, answer: &Answer, before: &Facts, after: &Facts, lines: &mut Vec<String>) {
    if !before.has_row(slot) || after.has_row(slot) {
        return;
    }
    let ended = match verb {
        Verb::Complete(done) => done.right.slot == slot && !answer.is_refusal(),
        Verb::Exchange { done, .. } | Verb::CompleteMany(done) => done.iter().any(|done| done.right.slot == slot),
        Verb::Purge { shelf, .. } => {
            before.score(set_of(*shelf), slot).is_some() || before.score("parked", slot).is_some()
        }
        // Nothing is remembered then, either.
        Verb::Obliterate { .. } if !answer.is_refusal() => return,
        Verb::Remove(removed) => *removed == slot && !answer.is_refusal(),
        Verb::Cancel(cancelled) => *cancelled == slot && !answer.is_refusal(),
        Verb::Settle { right, .. } => {
            let ends =
                matches!(verb, Verb::Settle { how: Settling::Cancel, .. }) || before.field(slot, "cancel").is_some();
            right.slot == slot && !answer.is_refusal() && ends
        }
        Verb::Reap { .. } | Verb::Beat { .. } => before.field(slot, "cancel").is_some(),
        Verb::DrainLane(lane) => before.score(&line(Some(*lane)), slot).is_some(),
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

fn set_of(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Pending => "pending",
        Shelf::Active => "active",
        Shelf::Scheduled => "schedule",
        Shelf::Parked => "parked",
        Shelf::Dead => "dead",
        Shelf::Finished => "done",
    }
}

/// Nothing but known jobs stands in the sets.
fn members(facts: &Facts, lines: &mut Vec<String>) {
    let known: Vec<String> = Slot::all().map(|slot| format!("{slot:?}")).collect();
    let sets: Vec<String> = places().map(|(set, _)| set).chain(["done".to_owned(), "slots".to_owned()]).collect();
    let strange = facts.0.keys().filter(|spot| sets.contains(&spot.key) && !known.contains(&spot.name));
    lines.extend(strange.map(|spot| format!("a stranger: {spot}")));
}

/// Results expire, what is remembered of merged enqueues, and a key that has outlived its job, which can be found; and
/// nothing else does: no key of an unfinished job.
fn expiry(facts: &Facts, lines: &mut Vec<String>) {
    for (spot, value) in &facts.0 {
        let is_result = spot.key.starts_with("job:") && spot.key.ends_with(":result");
        let ownerless = spot.key.strip_prefix("de:").filter(|key| unfinished(key, value, facts).is_none());
        let is_ownerless = ownerless.is_some();
        if spot.kind == "string" && ownerless.is_some_and(|key| facts.get("windows", "zset", key).is_none()) {
            lines.push(format!("{} has outlived its job, and nothing leads to it", spot.key));
        }
        let expires = facts.get(&spot.key, "(expires)", "").is_some();
        if spot.kind != "(expires)" && expires != (is_result || is_ownerless || spot.key.starts_with("merged:")) {
            lines.push(format!("{} expires: {expires}", spot.key));
        }
    }
}

/// The unfinished job of this name, if it was enqueued with this key.
fn unfinished(key: &str, name: &str, facts: &Facts) -> Option<Slot> {
    let is_it = |slot: &Slot| format!("{slot:?}") == name && facts.field(*slot, "did") == Some(key);
    Slot::all().find(|slot| is_it(slot) && facts.score("dead", *slot).is_none())
}

/// A deduplication key is held by a job that hasn't ended, and isn't parked, or it goes by itself: it never has to heal. And
/// who is parked is known as the next of a key that somebody holds.
fn keys(facts: &Facts, lines: &mut Vec<String>) {
    let parked = |slot: Slot| facts.score("parked", slot).is_some();
    for (spot, holder) in facts.0.iter().filter(|(spot, _)| spot.key.starts_with("de:") && spot.kind == "string") {
        if unfinished(spot.key.trim_start_matches("de:"), holder, facts).is_some_and(parked) {
            lines.push(format!("{} is held by {holder}, which is parked", spot.key));
        }
    }
    // A slot of a recurring job that waits is no job.
    let next = facts.0.iter().filter(|(spot, next)| spot.key.starts_with("next:") && *next != "slot");
    for (spot, next) in next {
        let key = spot.key.trim_start_matches("next:");
        let holder = facts.get(&format!("de:{key}"), "string", "");
        if !unfinished(key, next, facts).is_some_and(parked) {
            lines.push(format!("{next} comes next for {key}, and isn't parked"));
        } else if holder.is_none_or(|holder| unfinished(key, holder, facts).is_none()) {
            lines.push(format!("{next} is parked behind {holder:?}"));
        }
    }
    for slot in Slot::all().filter(|slot| parked(*slot)) {
        let next = facts.field(slot, "did").and_then(|key| facts.get(&format!("next:{key}"), "string", ""));
        if next != Some(&format!("{slot:?}")) {
            lines.push(format!("{slot:?} is parked, and {next:?} comes next"));
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
    let flat = Slot::all().map(|slot| ("pending".to_owned(), slot));
    let served = Lane::all().filter(|lane| can_serve(*lane, after));
    let served = served.flat_map(|lane| Slot::all().map(move |slot| (line(Some(lane)), slot)));
    let is_new =
        |(line, slot): (String, Slot)| after.score(&line, slot).is_some() && before.score(&line, slot).is_none();
    if flat.chain(served).any(is_new) && after.get("marker", "zset", "0").is_none() {
        lines.push("a job can be claimed by now, and nobody is woken".to_owned());
    }
}
