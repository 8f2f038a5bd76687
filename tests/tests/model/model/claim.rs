//! How workers take jobs, and how they keep them.

use emq::Extended;

use super::{HEADER, Hold, Model, NAME, Note, Place, Worker, payload};
use crate::answer::{Answer, Handed};
use crate::verb::{Done, EXCHANGER, Right, Slot};

impl Model {
    pub(super) fn claim(&mut self, worker: usize, max: usize, lease: i64, lost: bool) -> Answer {
        let caller = &mut self.workers[worker];
        if !caller.owed {
            caller.request += 1;
        }
        caller.owed = lost;
        let request = caller.request;
        let (jobs, expired) = match caller.note.clone() {
            Some(note) if note.request == request => (self.again(&note, lease), 0),
            _ => self.take_new(worker, request, max, lease),
        };
        let more = self.room() > 0 && self.has_work();
        self.marker |= more;
        if lost { Answer::None } else { Answer::Claimed { jobs, more, expired } }
    }

    /// First what is done is written, and then it is a claim like any other.
    pub(super) fn exchange(&mut self, done: &[Done], max: usize, lease: i64, lost: bool) -> Answer {
        let settled = done.iter().map(|done| self.complete(done)).collect();
        let claimed = self.claim(EXCHANGER, max, lease, lost);
        if lost { Answer::None } else { Answer::Exchanged(settled, Box::new(claimed)) }
    }

    fn take_new(&mut self, worker: usize, request: u64, max: usize, lease: i64) -> (Vec<Handed>, usize) {
        let until = self.after(lease);
        let found = self.take_in_turn(max);
        for slot in &found.taken {
            if let Some(job) = self.jobs.get_mut(slot) {
                job.place = Place::Active { until };
                job.attempts += 1;
                job.worker = Some(worker);
                job.reaped = None;
                job.settled = None;
            }
        }
        let jobs: Vec<Handed> = found.taken.iter().filter_map(|slot| self.handed(*slot)).collect();
        let took: Vec<_> = jobs.iter().map(|job| (job.right.slot, job.right.token)).collect();
        self.handed.extend(took.iter().copied());
        if !took.is_empty() {
            self.workers[worker].note = Some(Note { request, at: self.now(), took });
        }
        for slot in &found.taken {
            if self.jobs.get(slot).is_some_and(|job| job.hold == Hold::UntilStart) {
                self.free_key(*slot);
            }
        }
        for slot in &found.expired {
            if let Some(job) = self.jobs.get_mut(slot) {
                job.last_error = Some("expired".to_owned());
            }
            self.put_dead(*slot);
        }
        (jobs, found.expired.len())
    }

    /// The answer to this claim was lost: the same jobs again, as far as they are still held by it.
    fn again(&mut self, note: &Note, lease: i64) -> Vec<Handed> {
        let until = self.after(lease);
        let mut jobs = Vec::new();
        for (slot, token) in &note.took {
            let right = Right { slot: *slot, token: *token };
            if self.holds_a_lease(right) {
                if let Some(job) = self.jobs.get_mut(slot) {
                    job.place = Place::Active { until };
                }
                jobs.extend(self.handed(*slot));
            }
        }
        jobs
    }

    fn handed(&self, slot: Slot) -> Option<Handed> {
        let job = self.jobs.get(&slot)?;
        Some(Handed {
            right: Right { slot, token: job.attempts },
            name: Some(NAME.to_owned()),
            payload: payload(job),
            failures: job.failures,
            stalled: job.stalled,
            max_attempts: job.max_attempts,
            header: job.header.then(|| HEADER.to_owned()),
            lane: job.lane.map(|lane| format!("{lane:?}")),
        })
    }

    pub(super) fn leave(&mut self, worker: usize) -> Answer {
        self.workers[worker] = Worker::default();
        Answer::None
    }

    pub(super) fn extend(&mut self, rights: &[Right], term: i64) -> Answer {
        let until = self.after(term);
        let mut extended = Vec::new();
        for right in rights {
            let held = self.holds_a_lease(*right);
            let cancel = self.jobs.get(&right.slot).is_some_and(|job| job.cancel);
            extended.push(match (held, cancel) {
                (true, false) => Extended::Renewed,
                (true, true) => Extended::Cancelled,
                (false, _) => Extended::Lost,
            });
            if let (true, Some(job)) = (held && !cancel, self.jobs.get_mut(&right.slot)) {
                job.place = Place::Active { until };
            }
        }
        Answer::Extended(extended)
    }

    /// Whether the job is active under this very token. That its lease may have run out doesn't matter, as long as the
    /// reaper hasn't seen it.
    pub(super) fn holds_a_lease(&self, right: Right) -> bool {
        let job = self.jobs.get(&right.slot);
        job.is_some_and(|job| job.attempts == right.token && matches!(job.place, Place::Active { .. }))
    }
}
