//! Random sequences: what comes next is chosen by where the model stands, so that most verbs find something to do.

mod repeat;

use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

use crate::model::{Ended, Model, Place};
use crate::verb::{
    Done, HALF_HOUR, HOUR, Held, Key, Lane, Meeting, Rate, Right, Rules, Settling, Shelf, Slot, Spec, Tuning, Verb,
    WORKERS, When,
};

#[derive(Debug)]
pub(crate) struct Machine;

impl ReferenceStateMachine for Machine {
    type State = Model;
    type Transition = Verb;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Verb> {
        let right = right(model);
        let (go_on, pause) = if model.whole.paused { (16, 1) } else { (1, 1) };
        // What finds nothing to do is tried, too, but not as often.
        let waits = if model.whole.paused || !model.has_work() { 4 } else { 20 };
        let held = model.jobs.values().any(|job| matches!(job.place, Place::Active { .. }) || job.reaped.is_some());
        let settles = if held { 3 } else { 1 };
        let expired = if model.active().iter().any(|(until, _)| *until <= model.now()) { 24 } else { 2 };
        let due = if model.scheduled().iter().any(|(due, _)| *due <= model.now()) { 12 } else { 2 };
        let passes = if model.active().is_empty() { 6 } else { 14 };
        let died = if model.dead().is_empty() { 1 } else { 5 };
        let trims = 2 + 3 * model.dead().len() as u32;
        let repeats = repeats(model);
        let cancels = if model.active().is_empty() { 2 } else { 6 };
        prop_oneof![
            8 => spec(model).prop_map(Verb::Enqueue),
            4 => proptest::collection::vec(spec(model), 0..5).prop_map(Verb::EnqueueMany),
            waits => claim(),
            4 * settles => done(right.clone()).prop_map(Verb::Complete),
            settles => proptest::collection::vec(done(right.clone()), 0..4).prop_map(Verb::CompleteMany),
            waits / 2 => exchange(right.clone()),
            3 * settles => report(right.clone()),
            7 * settles => settle(right.clone()),
            repeats.0 => repeats.1,
            2 * settles => (proptest::collection::vec(right, 1..4), hours(1..4)).prop_map(|(rights, term)| Verb::Extend { rights, term }),
            due => Just(Verb::Promote),
            expired => select(vec![Some(3), None, Some(2), None, Some(1), Some(0)]).prop_map(|max_stalled| Verb::Reap { max_stalled }),
            3 => select(vec![Some(3), None, Some(1)]).prop_map(|max_stalled| Verb::Beat { max_stalled }),
            died => dead_or_any(model).prop_map(Verb::Revive),
            3 => any_slot().prop_map(Verb::Remove),
            cancels => any_slot().prop_map(Verb::Cancel),
            5 => update(),
            trims => trim(),
            passes => (1..5_i64).prop_map(|n| Verb::Advance(n * HALF_HOUR)),
            pause => Just(Verb::Pause(None)),
            go_on => Just(Verb::Resume(None)),
            2 => any_lane().prop_map(|lane| Verb::Pause(Some(lane))),
            3 => any_lane().prop_map(|lane| Verb::Resume(Some(lane))),
            8 => tune(),
            3 => (any_slot(), proptest::option::weighted(0.7, any_lane())).prop_map(|(slot, lane)| Verb::Reassign(slot, lane)),
            1 => any_lane().prop_map(Verb::DrainLane),
            1 => any_lane().prop_map(Verb::LookAtLane),
            1 => Just(Verb::ListLanes),
            1 => Just(Verb::Limits),
            1 => (1..4_u32).prop_map(Verb::Partitions),
            3 => purge(),
            10 => repeat::repeat(model),
            4 => Just(Verb::TakeMarker),
            1 => (0..WORKERS).prop_map(|worker| Verb::Leave { worker }),
            1 => Just(Verb::Counts),
            2 => any_slot().prop_map(Verb::Look),
            2 => list(),
        ]
        .boxed()
    }

    fn apply(mut model: Model, verb: &Verb) -> Model {
        model.apply(verb);
        model
    }
}

fn any_slot() -> impl Strategy<Value = Slot> + Clone {
    select(Slot::all().collect::<Vec<_>>())
}

fn any_lane() -> impl Strategy<Value = Lane> + Clone {
    select(Lane::all().collect::<Vec<_>>())
}

/// Limits of the queue are drawn seldom, and taken away often: they stop everything else.
fn tune() -> impl Strategy<Value = Verb> {
    let limit = |none: u32| prop_oneof![none => Just(None), 3 => (1..3_u32).prop_map(Some), 1 => Just(Some(0))];
    let rate = |none: u32| prop_oneof![none => Just(None), 3 => rate().prop_map(Some)];
    let of_lane = prop_oneof![
        3 => limit(2).prop_map(Tuning::Concurrency),
        3 => select(vec![0, 1, 2, 3, 3]).prop_map(Tuning::Weight),
        3 => rate(2).prop_map(Tuning::Rate),
    ];
    let of_queue = prop_oneof![1 => limit(9).prop_map(Tuning::Concurrency), 1 => rate(6).prop_map(Tuning::Rate)];
    prop_oneof![
        3 => (any_lane(), of_lane).prop_map(|(lane, tuning)| Verb::Tune { lane: Some(lane), tuning }),
        1 => of_queue.prop_map(|tuning| Verb::Tune { lane: None, tuning }),
    ]
}

/// Jobs that come evenly are apart by a multiple of half an hour.
fn rate() -> impl Strategy<Value = Rate> {
    (select(vec![(1, HOUR), (2, HOUR), (2, 4 * HOUR), (4, 2 * HOUR)]), 1..4_u32)
        .prop_map(|((max, period), burst)| Rate { max, period, burst })
}

fn dead_or_any(model: &Model) -> impl Strategy<Value = Slot> + Clone + use<> {
    let dead = model.dead().into_iter().map(|(_, slot)| slot);
    // Each of the dead several times, to be drawn more often.
    let dead = dead.flat_map(|slot| [slot; 6]);
    select(dead.chain(Slot::all()).collect::<Vec<_>>())
}

fn hours(range: std::ops::Range<i64>) -> impl Strategy<Value = i64> + Clone {
    range.prop_map(|hours| hours * HOUR)
}

/// Ways to hold a key, and to meet who holds it. The latest times are whole hours, off those of the caller.
fn rules() -> impl Strategy<Value = Rules> + Clone {
    let wait = || (1..5_i64).prop_map(|n| n * HALF_HOUR);
    let held = prop_oneof![
        4 => Just(Held::UntilEnd),
        2 => Just(Held::UntilStart),
        2 => wait().prop_map(Held::For),
        2 => wait().prop_map(Held::AfterEnd),
    ];
    let meeting = prop_oneof![
        3 => Just(Meeting::Keeps),
        2 => Just(Meeting::Replaced),
        2 => hours(1..4).prop_map(|latest| Meeting::Debounced { latest }),
    ];
    (held, meeting, any::<bool>()).prop_map(|(held, meeting, then_once)| Rules { held, meeting, then_once })
}

/// The keys of jobs that run, behind which others can be parked; if there are none, any.
fn keys_of_running(model: &Model) -> Vec<Key> {
    let running = model.jobs.values().filter(|job| matches!(job.place, Place::Active { .. }));
    let keys: Vec<Key> = running.filter_map(|job| job.key).filter(|key| matches!(key, Key::Of(_))).collect();
    if keys.is_empty() { vec![Key::Of(0)] } else { keys }
}

/// Ids that are free are drawn more often than such as are taken.
fn free_slots(model: &Model) -> Vec<Slot> {
    let now = model.now();
    let free = Slot::all().filter(|slot| {
        !model.jobs.contains_key(slot) && model.done.get(slot).is_none_or(|finished| finished.until <= now)
    });
    free.flat_map(|slot| [slot; 4]).chain(Slot::all()).collect()
}

fn spec(model: &Model) -> impl Strategy<Value = Spec> + Clone + use<> {
    let slots = free_slots(model);
    let when = prop_oneof![
        6 => Just(When::Now),
        3 => hours(0..4).prop_map(When::After),
        // Off the hours by half of one: what is due at a time of the caller must not meet what is due after a wait
        // within the same call, since which of the two comes first depends on the ms.
        1 => select(vec![-1, 1, 3]).prop_map(|halves| When::At(halves * HALF_HOUR)),
    ];
    let key = prop_oneof![
        6 => Just((None, Rules::default())),
        5 => (0..3_u8, rules()).prop_map(|(key, rules)| (Some(Key::Of(key)), rules)),
        2 => (select(keys_of_running(model)), rules())
            .prop_map(|(key, rules)| (Some(key), Rules { then_once: true, ..rules })),
    ];
    let max_attempts = prop_oneof![3 => Just(None), 1 => select(vec![1, 7, u32::MAX]).prop_map(Some)];
    let priority = select(vec![0, 0, 0, -1, 2, i32::MIN, i32::MAX]);
    let lane = proptest::option::weighted(0.6, any_lane());
    let expires = proptest::option::weighted(0.15, (1..4_i64).prop_map(|n| n * HALF_HOUR));
    let fields = (0..2_u8, key, when, priority, max_attempts, proptest::bool::weighted(0.2), lane, expires);
    let plain = (select(slots.clone()), 0..2_u8).prop_map(|(slot, payload)| Spec::plain(slot, payload));
    let any = (select(slots), fields).prop_map(|(slot, fields)| {
        let (payload, (key, rules), when, priority, max_attempts, header, lane, expires) = fields;
        Spec { slot, payload, key, rules, when, priority, max_attempts, header, lane, expires }
    });
    prop_oneof![1 => plain, 4 => any]
}

/// How many jobs `exchange_plain` hands out; a claim of so many tries it first.
pub(crate) const MOST_PLAIN: usize = 16;

fn claim() -> impl Strategy<Value = Verb> {
    (0..WORKERS, 1..5_usize, hours(1..4), proptest::bool::weighted(0.15)).prop_map(|(worker, max, lease, lost)| {
        // One of many takes a single call, and is sure to have been carried out when that has.
        let max = if lost { MOST_PLAIN + max } else { max };
        Verb::Claim { worker, max, lease, lost }
    })
}

/// The tokens that hold are drawn most often; then those that once held, or never did.
fn right(model: &Model) -> impl Strategy<Value = Right> + Clone + use<> {
    let mut rights = Vec::new();
    let mut add = |times: usize, slot: Slot, token: u64| rights.extend(vec![Right { slot, token }; times]);
    for (slot, job) in &model.jobs {
        let times = match job.place {
            _ if job.reaped.is_some() => 30,
            Place::Active { .. } => 12,
            _ => 4,
        };
        add(times, *slot, job.attempts);
        add(1, *slot, job.attempts + 1);
        add(1, *slot, job.attempts.saturating_sub(1));
    }
    for slot in model.done.keys() {
        let last = model.handed.get(slot).copied().unwrap_or(0);
        add(2, *slot, last);
        add(1, *slot, last + 1);
    }
    // Of no job, or of one that never had such a token.
    add(1, Slot(0), 1);
    add(1, Slot(7), 2);
    select(rights)
}

fn done(right: impl Strategy<Value = Right>) -> impl Strategy<Value = Done> {
    let result = prop_oneof![1 => Just(None), 1 => (0..9_u8).prop_map(Some)];
    (right, select(vec![HOUR, 0, HALF_HOUR, 3 * HOUR]), result).prop_map(|(right, retention, result)| Done {
        right,
        retention,
        result,
    })
}

fn exchange(right: impl Strategy<Value = Right>) -> impl Strategy<Value = Verb> {
    (proptest::collection::vec(done(right), 0..4), 1..5_usize, hours(1..4), proptest::bool::weighted(0.15))
        .prop_map(|(done, max, lease, lost)| Verb::Exchange { done, max, lease, lost })
}

/// What a run tells of itself; lines that come again among it.
fn report(right: impl Strategy<Value = Right> + Clone) -> impl Strategy<Value = Verb> {
    prop_oneof![
        1 => (right.clone(), 0..9_u8).prop_map(|(right, value)| Verb::Progress { right, value }),
        3 => (right, 0..4_u8).prop_map(|(right, line)| Verb::Log { right, line }),
        1 => any_slot().prop_map(Verb::Logs),
    ]
}

/// Seldom of everything, which begins the queue anew.
fn purge() -> impl Strategy<Value = Verb> {
    let shelf = select(vec![Shelf::Pending, Shelf::Scheduled, Shelf::Parked, Shelf::Dead, Shelf::Dead]);
    prop_oneof![
        7 => (shelf, select(vec![0, HOUR])).prop_map(|(shelf, age)| Verb::Purge { shelf, age }),
        1 => proptest::bool::weighted(0.3).prop_map(|force| Verb::Obliterate { force }),
    ]
}

fn settle(right: impl Strategy<Value = Right>) -> impl Strategy<Value = Verb> {
    let how = prop_oneof![
        4 => (hours(0..4), 0..9_u8).prop_map(|(delay, error)| Settling::Retry { delay, error }),
        4 => (0..9_u8).prop_map(|error| Settling::Bury { error }),
        2 => hours(0..4).prop_map(|delay| Settling::Snooze { delay }),
        2 => hours(1..4).prop_map(|delay| Settling::Hold { delay }),
        3 => Just(Settling::Release),
        2 => Just(Settling::Cancel),
    ];
    (right, how).prop_map(|(right, how)| Verb::Settle { right, how })
}

/// The same settle or log line again, as by a worker whose first try was carried out and whose answer was lost; and how often.
fn repeats(model: &Model) -> (u32, BoxedStrategy<Verb>) {
    let mut verbs = Vec::new();
    for (slot, job) in &model.jobs {
        verbs.extend(job.logged.map(|(token, line)| Verb::Log { right: Right { slot: *slot, token }, line }));
        let Some((verb, token)) = job.settled.as_ref().and_then(|settled| settled.split_once(' ')) else { continue };
        let how = match verb {
            "retry" => Settling::Retry { delay: HOUR, error: 9 },
            "bury" => Settling::Bury { error: 9 },
            "snooze" => Settling::Snooze { delay: HOUR },
            "hold" => Settling::Hold { delay: HOUR },
            _ => Settling::Release,
        };
        let right = Right { slot: *slot, token: token.parse().unwrap_or(0) };
        verbs.push(Verb::Settle { right, how });
    }
    for (slot, finished) in &model.done {
        let token = match finished.how {
            Ended::Done(token) => token,
            Ended::Removed => 1,
            Ended::Cancelled => {
                let right = Right { slot: *slot, token: model.handed.get(slot).copied().unwrap_or(1) };
                verbs.push(Verb::Settle { right, how: Settling::Cancel });
                right.token
            }
        };
        verbs.push(Verb::Complete(Done { right: Right { slot: *slot, token }, retention: HOUR, result: Some(9) }));
    }
    if verbs.is_empty() { (1, Just(Verb::Promote).boxed()) } else { (6, select(verbs).boxed()) }
}

fn update() -> impl Strategy<Value = Verb> {
    let when = prop_oneof![
        3 => Just(None),
        2 => Just(Some(When::Now)),
        2 => hours(0..4).prop_map(|wait| Some(When::After(wait))),
        1 => select(vec![-1, 1, 3]).prop_map(|halves| Some(When::At(halves * HALF_HOUR))),
    ];
    let payload = proptest::option::weighted(0.3, 0..2_u8);
    let priority = proptest::option::weighted(0.4, select(vec![0, -1, 2, i32::MIN, i32::MAX]));
    (any_slot(), payload, priority, when).prop_map(|(slot, payload, priority, when)| Verb::Update {
        slot,
        payload,
        priority,
        when,
    })
}

fn trim() -> impl Strategy<Value = Verb> {
    (select(vec![2 * HOUR, HOUR, HALF_HOUR, 0]), select(vec![1000, 3, 2, 1, 1, 0]))
        .prop_map(|(age, count)| Verb::Trim { age, count })
}

fn list() -> impl Strategy<Value = Verb> {
    let shelf =
        select(vec![Shelf::Pending, Shelf::Active, Shelf::Scheduled, Shelf::Parked, Shelf::Dead, Shelf::Finished]);
    (shelf, 0..3_u64, 1..4_usize).prop_map(|(shelf, offset, count)| Verb::List { shelf, offset, count })
}
