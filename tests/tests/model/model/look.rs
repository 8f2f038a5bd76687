//! What can be seen from outside.

use emq::JobState;

use super::{Ended, HEADER, Job, Model, Moment, NAME, Place};
use crate::answer::{Answer, Record};
use crate::verb::{Shelf, Slot};

impl Model {
    /// Who runs, the lease that ends first in front.
    pub(crate) fn active(&self) -> Vec<(Moment, Slot)> {
        self.by_moment(|place| if let Place::Active { until } = place { Some(until) } else { None })
    }

    /// What is scheduled, the next in front.
    pub(crate) fn scheduled(&self) -> Vec<(Moment, Slot)> {
        self.by_moment(|place| if let Place::Scheduled { due } = place { Some(due) } else { None })
    }

    /// What is parked, what is looked at next in front.
    pub(crate) fn parked(&self) -> Vec<(Moment, Slot)> {
        self.by_moment(|place| if let Place::Parked { look } = place { Some(look) } else { None })
    }

    /// The dead letters, the oldest in front.
    pub(crate) fn dead(&self) -> Vec<(Moment, Slot)> {
        self.by_moment(|place| if let Place::Dead { since } = place { Some(since) } else { None })
    }

    fn by_moment(&self, moment: impl Fn(Place) -> Option<Moment>) -> Vec<(Moment, Slot)> {
        let mut found: Vec<_> = self.jobs.iter().filter_map(|(slot, job)| Some((moment(job.place)?, *slot))).collect();
        found.sort_unstable();
        found
    }

    pub(super) fn counts(&self) -> Answer {
        Answer::Counts {
            pending: self.jobs.values().filter(|job| job.place == Place::Pending).count(),
            active: self.active().len(),
            scheduled: self.scheduled().len(),
            parked: self.parked().len(),
            dead: self.dead().len(),
            remembered: self.done.len(),
            completed: self.completed,
            failed: self.failed,
            paused: self.whole.paused,
            lanes: self.depths().len(),
        }
    }

    pub(super) fn look(&self, slot: Slot) -> Answer {
        if let Some(job) = self.jobs.get(&slot) {
            let state = state(job.place);
            let record = Record {
                state,
                name: Some(NAME.to_owned()),
                payload: payload(job),
                attempts: job.attempts,
                failures: job.failures,
                stalled: job.stalled,
                last_error: job.last_error.clone(),
                worker: job.worker,
                priority: job.priority,
                max_attempts: job.max_attempts,
                key: job.key.map(|key| format!("{key:?}")),
                header: job.header.then(|| HEADER.to_owned()),
                lane: job.lane.map(|lane| format!("{lane:?}")),
                result: None,
            };
            return Answer::Looked(Some(state), Some(Box::new(record)));
        }
        let Some(finished) = self.done.get(&slot) else { return Answer::Looked(None, None) };
        let state = match finished.how {
            Ended::Done(_) => JobState::Finished,
            Ended::Removed => JobState::Removed,
            Ended::Cancelled => JobState::Cancelled,
        };
        let record = Record {
            state,
            name: None,
            payload: String::new(),
            attempts: 0,
            failures: 0,
            stalled: 0,
            last_error: None,
            worker: None,
            priority: 0,
            max_attempts: None,
            key: None,
            header: None,
            lane: None,
            result: self.results.get(&slot).map(|(result, _)| result.to_string()),
        };
        Answer::Looked(Some(state), Some(Box::new(record)))
    }

    pub(super) fn list(&self, shelf: Shelf, offset: u64, count: usize) -> Answer {
        Answer::Listed(self.on(shelf).into_iter().skip(offset as usize).take(count).collect())
    }

    /// What stands there, in its order.
    pub(super) fn on(&self, shelf: Shelf) -> Vec<Slot> {
        let slots = |listed: Vec<(Moment, Slot)>| listed.into_iter().map(|(_, slot)| slot).collect();
        match shelf {
            Shelf::Pending => self.waiting(None),
            Shelf::Active => slots(self.active()),
            Shelf::Scheduled => slots(self.scheduled()),
            Shelf::Parked => slots(self.parked()),
            Shelf::Dead => slots(self.dead()),
            Shelf::Finished => {
                let mut finished: Vec<_> =
                    self.done.iter().map(|(slot, finished)| (finished.until, finished.how.mark(), *slot)).collect();
                finished.sort_unstable();
                finished.into_iter().map(|(_, _, slot)| slot).collect()
            }
        }
    }
}

fn state(place: Place) -> JobState {
    match place {
        Place::Pending => JobState::Pending,
        Place::Active { .. } => JobState::Active,
        Place::Scheduled { .. } => JobState::Scheduled,
        Place::Parked { .. } => JobState::Parked,
        Place::Dead { .. } => JobState::Dead,
    }
}

/// What the row of a job says of its place.
pub(crate) fn state_text(place: Place) -> &'static str {
    match place {
        Place::Pending => "pending",
        Place::Active { .. } => "active",
        Place::Scheduled { .. } => "scheduled",
        Place::Parked { .. } => "parked",
        Place::Dead { .. } => "dead",
    }
}

pub(crate) fn payload(job: &Job) -> String {
    format!("{{\"n\":{}}}", job.payload)
}

/// The slot of a recurring job comes first.
pub(crate) fn headers(job: &Job) -> Option<String> {
    let slot = job.slot.map(|slot| format!("\"emq-slot\":\"{slot}\""));
    let origin = job.header.then(|| format!("\"origin\":\"{HEADER}\""));
    let headers: Vec<String> = slot.into_iter().chain(origin).collect();
    (!headers.is_empty()).then(|| format!("{{{}}}", headers.join(",")))
}
