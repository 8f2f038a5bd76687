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

/// What is wrong.
pub(crate) fn all(facts: &Facts, book: &Book) -> Vec<Violation> {
    let noted = book.violations().into_iter().map(|(job, what)| Violation { job, what });
    let slots = slots::check(&facts.slots, &facts.last_slots).into_iter();
    let slots = slots.map(|(job, what)| Violation { job: job.and_then(|job| job.parse().ok()), what });
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
    let found = checks.into_iter().flat_map(|check| check(facts));
    noted.chain(sums::check(facts, book)).chain(found).chain(slots).collect()
}
