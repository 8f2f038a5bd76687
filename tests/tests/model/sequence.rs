//! Plays a sequence on the model and on a server, and compares them after each verb.

use std::fmt::Write as _;
use std::time::Duration;

use crate::answer::Answer;
use crate::bench::{Bench, Stage};
use crate::expect::differences;
use crate::facts::Facts;
use crate::invariants;
use crate::model::Model;
use crate::tally::Tally;
use crate::verb::{FAR, Verb};

/// Answers what is wrong after which verb, if anything is.
pub(crate) async fn play(
    bench: &mut Bench,
    mut model: Model,
    verbs: &[Verb],
    seen: &dyn Fn(),
    tally: &mut Tally,
) -> Result<(), String> {
    let mut stage = bench.stage().await;
    stage.events().await?;
    let mut before = stage.facts().await;
    for (n, verb) in verbs.iter().enumerate() {
        seen();
        let wanted = model.apply(verb);
        let step = step(&mut stage, verb, &wanted, &model, &before).await;
        before = step.map_err(|what| format!("after verb {} of {}, {verb:?}:\n{what}", n + 1, verbs.len()))?;
        tally.count(verb, &wanted);
        tally.state(&model);
    }
    Ok(())
}

/// Carries out a verb that the model has already carried out, and answers what is on the server then.
async fn step(
    stage: &mut Stage<'_>,
    verb: &Verb,
    wanted: &Answer,
    model: &Model,
    before: &Facts,
) -> Result<Facts, String> {
    let start = stage.tick().await;
    let (answer, wait) = stage.play(verb).await?;
    stage.now = stage.time().await;
    let end = stage.now;
    stage.brackets.push(start, end);
    let after = stage.facts().await;

    let mut wrong = Vec::new();
    if answer != *wanted {
        wrong.push(format!("the answer is {answer:?}\n  the model's {wanted:?}"));
    }
    wrong.extend(differences(model, &stage.brackets, &after));
    wrong.extend(invariants::broken(verb, &answer, before, &after));
    if let Some(wait) = wait {
        // Who is told that there is more isn't told of later.
        let expected = if answer.is_more() { None } else { expected_wait(verb, wait, &after, (start, end)) };
        wrong.extend(check_wait(wait, expected));
    }
    let events = stage.events().await?;
    let told: Vec<_> = model.events.iter().map(|(event, slot)| ((*event).to_owned(), *slot)).collect();
    if events != told {
        wrong.push(format!("those who listen were told {events:?}\n  by the model {told:?}"));
    }
    wrong.extend(check_expiries(stage, model).await);
    if wrong.is_empty() {
        return Ok(after);
    }
    let mut text = String::new();
    for line in wrong {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("on the server:\n");
    for (spot, value) in &after.0 {
        let _ = writeln!(text, "  {spot} {value}");
    }
    Err(text)
}

/// How many ms there is nothing to do, at least and at most: until the first score of the sets that a call looks at.
fn expected_wait(verb: &Verb, wait: Option<Duration>, after: &Facts, (start, end): (i64, i64)) -> Option<(i64, i64)> {
    // Slots that are due already are looked at elsewhere.
    let slot = after.first_from("repeat", FAR as f64).filter(|at| at.is_finite());
    let mut events = vec![after.first("schedule"), after.first("held")];
    if let Verb::Repeat(_) = verb {
        events = vec![slot];
    } else if let Verb::Claim { .. } | Verb::Exchange { .. } = verb {
        events.extend([after.first("active"), slot]);
        // Where nothing waits for a limit, a claim needn't tell when it ends.
        let waiting = ["pending", "lanes"].map(|set| after.first(set));
        let is_quiet = events.iter().chain(&waiting).all(Option::is_none);
        if wait.is_none() && is_quiet && matches!(verb, Verb::Claim { .. }) {
            return None;
        }
        let limits = [after.number("meta", "held"), after.number("meta", "rate")];
        events.extend(limits.map(|at| at.filter(|at| *at > (end + 1) as f64)));
    }
    let first = events.into_iter().flatten().min_by(f64::total_cmp);
    first.map(|at| ((at as i64 - end).max(0), (at.ceil() as i64 - start).max(0)))
}

fn check_wait(wait: Option<Duration>, range: Option<(i64, i64)>) -> Option<String> {
    let wait = wait.map(|wait| wait.as_millis() as i64);
    match (range, wait) {
        (None, None) => None,
        (Some((from, to)), Some(wait)) if (from..=to).contains(&wait) => None,
        _ => Some(format!("it said that there is nothing to do for {wait:?} ms, and that has to be in {range:?}")),
    }
}

/// Whether what goes by itself is kept as long as it has to be. The time to live isn't in a dump.
async fn check_expiries(stage: &mut Stage<'_>, model: &Model) -> Vec<String> {
    let results = model.results.iter().map(|(slot, (_, until))| (format!("job:{}:result", stage.id(*slot)), *until));
    let held = model.keys.iter().filter_map(|(key, held)| Some((format!("de:{key:?}"), held.until?)));
    let merged = model.merged.iter().map(|(slot, (_, until))| (format!("merged:{}", stage.id(*slot)), *until));
    let expiring: Vec<_> = results.chain(held).chain(merged).collect();
    let mut wrong = Vec::new();
    for (key, until) in expiring {
        let (from, to) = stage.brackets.of(until, model.clock);
        let start = stage.time().await;
        let left = stage.left(&key).await;
        let end = stage.time().await;
        // It was asked at some time from start to end.
        if left < 0 || end + left < from - MOVES || start + left > to + MOVES {
            wrong.push(format!("{key} goes in {left} ms, between {start} and {end}; until {from} to {to}"));
        }
    }
    wrong
}

/// By how many ms an expiry may be off after all the moves of a sequence: each takes what is left in whole ms.
const MOVES: i64 = 60;
