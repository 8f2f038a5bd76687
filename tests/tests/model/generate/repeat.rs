//! What is done with recurring jobs, drawn by where they stand.

use emq::{Missed, Overlap};
use proptest::prelude::*;
use proptest::sample::select;

use super::{any_lane, free_slots};
use crate::model::Model;
use crate::verb::{FAR, HALF_HOUR, Name, Repeat, Run, Template, Turn, Verb};

pub(super) fn repeat(model: &Model) -> impl Strategy<Value = Verb> + use<> {
    let name = || select(Name::all().collect::<Vec<_>>());
    // What finds nothing to do is tried, too, but not as often.
    let (upserts, fires, others) = if model.recurring.is_empty() { (30, 2, 1) } else { (6, 20, 4) };
    let named = select(stands(model)).prop_flat_map(|(name, next)| (Just(name), proptest::option::of(slot(next))));
    prop_oneof![
        upserts => (name(), slot(None), template()).prop_map(|(name, first, template)| Repeat::Upsert { name, first, template }),
        upserts / 3 => again(model),
        others => name().prop_map(Repeat::Pause),
        2 * others => (name(), 0..2_u8, slot(None)).prop_map(|(name, schedule, next)| Repeat::Resume { name, schedule, next }),
        others / 2 => named.prop_map(|(name, stands_at)| Repeat::Remove { name, stands_at }),
        fires => proptest::collection::vec(turn(model), 1..3).prop_map(|turns| Repeat::Fire(each_job_once(turns))),
        2 => (0..2_usize, 1..3_usize).prop_map(|(offset, limit)| Repeat::Due { offset, limit }),
        1 => name().prop_map(Repeat::Get),
        2 => (0..2_u64, 1..3_usize).prop_map(|(offset, count)| Repeat::List { offset, count }),
    ]
    .prop_map(Verb::Repeat)
}

/// One that is due, or one that isn't for long; most often the one that is told.
fn slot(told: Option<i64>) -> BoxedStrategy<i64> {
    let any = prop_oneof![4 => (1..4_i64).prop_map(|n| n * 1_000), 1 => (0..3_i64).prop_map(|n| FAR + n * 1_000)];
    match told {
        Some(told) => prop_oneof![1 => any, 6 => Just(told)].boxed(),
        None => any.boxed(),
    }
}

/// Which slot each recurring job stands at.
fn stands(model: &Model) -> Vec<(Name, Option<i64>)> {
    Name::all().map(|name| (name, model.recurring.get(&name).and_then(|recurring| recurring.next))).collect()
}

fn template() -> impl Strategy<Value = Template> + Clone {
    let missed = select(vec![Missed::Skip, Missed::Once, Missed::Backfill(3)]);
    let overlap = select(vec![Overlap::Allow, Overlap::Skip, Overlap::Wait]);
    let lane = proptest::option::weighted(0.4, any_lane());
    let expires = proptest::option::weighted(0.2, (1..4_i64).prop_map(|n| n * HALF_HOUR));
    let max_attempts = proptest::option::weighted(0.2, 1..5_u32);
    let fields = (0..2_u8, select(vec![0, 0, -1, 2]), lane, max_attempts, proptest::bool::weighted(0.3), expires);
    (0..2_u8, missed, overlap, fields).prop_map(|(schedule, missed, overlap, fields)| {
        let (payload, priority, lane, max_attempts, header, expires) = fields;
        Template { schedule, missed, overlap, payload, priority, lane, max_attempts, header, expires }
    })
}

/// The same registration, or one that differs a little.
fn again(model: &Model) -> BoxedStrategy<Repeat> {
    let known: Vec<_> = model.recurring.iter().map(|(name, recurring)| (*name, recurring.template.clone())).collect();
    if known.is_empty() {
        return Just(Repeat::Pause(Name(0))).boxed();
    }
    (select(known), slot(None), 0..4_u8)
        .prop_map(|((name, mut template), first, payload)| {
            template.payload = if payload < 2 { payload } else { template.payload };
            Repeat::Upsert { name, first, template }
        })
        .boxed()
}

/// As who has read where it stands: some slots from there on run, and it is to stand at one after them. One in eight runs it
/// beside its slots.
fn turn(model: &Model) -> impl Strategy<Value = Turn> + use<> {
    let stands = select(stands(model)).prop_flat_map(|(name, next)| (Just(name), slot(next)));
    let jobs = proptest::collection::vec(select(free_slots(model)), 0..4);
    let next = prop_oneof![6 => Just(Some(0)), 1 => Just(Some(FAR)), 1 => Just(None)];
    (stands, jobs, next, proptest::bool::weighted(0.125)).prop_map(|((name, first), jobs, next, is_beside)| {
        let slots = (first..).step_by(1_000);
        if is_beside {
            let runs = jobs.into_iter().take(1).map(|job| Run { job, slot: None }).collect();
            return Turn { name, stands_at: None, next: None, runs };
        }
        let after = slots.clone().nth(jobs.len().max(1));
        let next = next.and_then(|later| after.map(|after| after.max(later)));
        let runs = jobs.into_iter().zip(slots).map(|(job, slot)| Run { job, slot: Some(slot) }).collect();
        Turn { name, stands_at: Some(first), next, runs }
    })
}

/// Who fires mints an id for each job.
fn each_job_once(mut turns: Vec<Turn>) -> Vec<Turn> {
    let mut minted = Vec::new();
    for turn in &mut turns {
        turn.runs.retain(|run| {
            let is_new = !minted.contains(&run.job);
            minted.push(run.job);
            is_new
        });
    }
    turns
}
