//! The checks: each holds what is known at the end against one promise.

mod fates;
mod keys;
mod pauses;
mod rates;
mod reports;
mod runs;
mod stays;
mod sums;
mod times;

use emq::JobId;

pub(crate) use self::stays::most as most_stays;
use crate::{book::Book, facts::Facts, slots};

/// A broken promise, and the job that it was broken to.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) job: Option<JobId>,
    pub(crate) what: String,
}

impl Violation {
    fn of(id: JobId, what: String) -> Self {
        Self { job: Some(id), what }
    }

    /// Of no job in particular.
    pub(crate) fn new(what: String) -> Self {
        Self { job: None, what }
    }
}

/// What is wrong: of each check one, then of each another, and so on, so that none hides what others have found.
pub(crate) fn all(facts: &Facts, book: &Book) -> Vec<Violation> {
    let noted = book.violations().into_iter().map(|(job, what)| Violation { job, what });
    let slots = slots::check(&facts.slots, &facts.last_slots).into_iter();
    let slots = slots.map(|(job, what)| Violation { job: job.and_then(|job| job.parse().ok()), what });
    let mut found = vec![noted.collect(), sums::check(facts, book), slots.collect()];
    let checks: [fn(&Facts) -> Vec<Violation>; 8] = [
        fates::check,
        runs::check,
        keys::check,
        stays::check,
        rates::check,
        pauses::check,
        times::check,
        reports::check,
    ];
    found.extend(checks.into_iter().map(|check| check(facts)));
    let mut found: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    let mut in_turn = Vec::new();
    while found.iter().any(|rest| rest.len() > 0) {
        in_turn.extend(found.iter_mut().filter_map(Iterator::next));
    }
    in_turn
}
