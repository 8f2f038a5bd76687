//! How a job gets in.

use super::{Holding, Job, Model, Place};
use crate::answer::{Admitted, Answer};
use crate::verb::Spec;

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
        if let Some(answer) = self.meet_holder(spec) {
            return answer;
        }
        self.done.remove(&slot);
        if let Some(key) = spec.key {
            self.keys.insert(key, Holding { by: slot, until: None });
        }
        let job = self.job_of(spec);
        self.jobs.insert(slot, job);
        self.put_at(slot, self.due_of(spec, None));
        Admitted::New
    }

    /// The job as it was enqueued, wherever it stands.
    pub(super) fn job_of(&self, spec: &Spec) -> Job {
        Job {
            place: Place::Pending,
            payload: spec.payload,
            key: spec.key,
            slot: None,
            hold: self.hold_of(spec),
            latest: self.latest_of(spec).filter(|_| spec.key.is_some()),
            behind: None,
            due: None,
            priority: spec.priority,
            priority_is_written: false,
            max_attempts: spec.max_attempts,
            header: spec.header,
            has_more: spec.key.is_some() || spec.max_attempts.is_some() || spec.header || spec.expires.is_some(),
            lane: spec.lane,
            expires: spec.expires.map(|wait| self.after(wait)),
            attempts: 0,
            failures: 0,
            stalled: 0,
            last_error: None,
            worker: None,
            reaped: None,
            cancel: false,
            settled: None,
            progress: None,
            log: Vec::new(),
            logged: None,
        }
    }
}
