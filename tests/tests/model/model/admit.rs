//! How a job gets in.

use super::{Job, Model, Place};
use crate::answer::{Admitted, Answer};
use crate::verb::{Spec, When};

impl Model {
    pub(super) fn enqueue(&mut self, specs: &[Spec]) -> Answer {
        Answer::Enqueued(specs.iter().map(|spec| self.admit(spec)).collect())
    }

    fn admit(&mut self, spec: &Spec) -> Admitted {
        let slot = spec.slot;
        if let Some(job) = self.jobs.get(&slot) {
            return if job.payload == spec.payload { Admitted::Duplicate(slot) } else { Admitted::Conflict(slot) };
        }
        if self.done.get(&slot).is_some_and(|finished| finished.until > self.now()) {
            return Admitted::Duplicate(slot);
        }
        if let Some(holder) = spec.key.and_then(|key| self.keys.get(&key)) {
            return Admitted::Duplicate(*holder);
        }
        self.done.remove(&slot);
        if let Some(key) = spec.key {
            self.keys.insert(key, slot);
        }
        let job = Job {
            place: Place::Pending,
            payload: spec.payload,
            key: spec.key,
            priority: spec.priority,
            max_attempts: spec.max_attempts,
            header: spec.header,
            lane: spec.lane,
            expires: spec.expires.map(|wait| self.after(wait)),
            attempts: 0,
            failures: 0,
            stalled: 0,
            last_error: None,
            worker: None,
            reaped: None,
            settled: None,
        };
        self.jobs.insert(slot, job);
        match spec.when {
            When::After(wait) | When::At(wait) if wait > 0 => self.put_scheduled(slot, self.after(wait)),
            When::Now | When::After(_) | When::At(_) => self.put_waiting(slot),
        }
        Admitted::New
    }
}
