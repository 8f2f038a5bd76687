//! What the holder of a job does with it, and what those are told who hold it no more.

use emq::Settled;

use super::{Ended, Finished, MARKS, Model, Place};
use crate::verb::{Done, Right, Settling};

/// A finished job is remembered for a minute at least.
pub(crate) const LEAST_RETENTION: i64 = 60_000;

impl Model {
    pub(super) fn complete(&mut self, done: &Done) -> Settled {
        let Done { right, retention, result } = *done;
        let Right { slot, token } = right;
        if !self.jobs.contains_key(&slot) {
            return match self.done.get(&slot).map(|finished| finished.how) {
                Some(Ended::Done(by)) if by % MARKS == token % MARKS => Settled::Repeated,
                Some(Ended::Cancelled) => Settled::Cancelled,
                Some(_) => Settled::Stale,
                None => Settled::Gone,
            };
        }
        if !self.holds(right) {
            return Settled::Stale;
        }
        let retention = retention.max(LEAST_RETENTION);
        self.take_out(slot, Place::Dead { since: self.now() });
        self.end_key(slot);
        self.forget(slot, Some(Finished { until: self.after(retention), how: Ended::Done(token) }));
        if let Some(result) = result {
            self.results.insert(slot, (result, self.after(retention)));
        }
        self.completed += 1;
        self.events.push(("completed", slot));
        Settled::Accepted
    }

    pub(super) fn settle(&mut self, right: Right, how: Settling) -> Settled {
        let Right { slot, token } = right;
        let settled = match how {
            Settling::Retry { .. } => format!("retry {token}"),
            Settling::Bury { .. } => format!("bury {token}"),
            Settling::Snooze { .. } => format!("snooze {token}"),
            Settling::Hold { .. } => format!("hold {token}"),
            Settling::Release => format!("release {token}"),
            // Of the row there is nothing left.
            Settling::Cancel => String::new(),
        };
        let holds = self.holds(right);
        let cancelled = self.done.get(&slot).is_some_and(|finished| finished.how == Ended::Cancelled);
        let Some(job) = self.jobs.get_mut(&slot) else {
            return match (cancelled, how) {
                (true, Settling::Cancel) => Settled::Repeated,
                (true, _) => Settled::Cancelled,
                (false, _) => Settled::Gone,
            };
        };
        if !holds {
            let repeated = job.attempts == token && job.settled.as_ref() == Some(&settled);
            return if repeated { Settled::Repeated } else { Settled::Stale };
        }
        if job.cancel || how == Settling::Cancel {
            self.end_as_cancelled(slot);
            return if how == Settling::Cancel { Settled::Accepted } else { Settled::Cancelled };
        }
        job.settled = Some(settled);
        job.worker = None;
        job.reaped = None;
        if let Settling::Retry { error, .. } | Settling::Bury { error } = how {
            job.failures += 1;
            job.last_error = Some(error_text(error));
        }
        let lane = job.lane;
        let due = self.now();
        self.take_out(slot, Place::Scheduled { due });
        match how {
            Settling::Retry { delay, .. } | Settling::Snooze { delay } => self.put_scheduled(slot, self.after(delay)),
            Settling::Cancel => {}
            Settling::Bury { .. } => self.put_dead(slot),
            Settling::Hold { delay } => {
                self.hold_back(lane, self.after(delay));
                self.put_waiting(slot);
            }
            Settling::Release => self.put_waiting(slot),
        }
        match how {
            Settling::Retry { .. } => self.events.push(("retried", slot)),
            Settling::Snooze { .. } => self.events.push(("snoozed", slot)),
            Settling::Hold { .. } | Settling::Release => self.events.push(("released", slot)),
            Settling::Bury { .. } | Settling::Cancel => {}
        }
        Settled::Accepted
    }

    /// Whether the token holds the job: it is active under it, or the reaper took it back and nobody claimed it since.
    pub(super) fn holds(&self, right: Right) -> bool {
        let reaped = self.jobs.get(&right.slot).is_some_and(|job| job.reaped == Some(right.token));
        self.holds_a_lease(right) || reaped
    }
}

pub(crate) fn error_text(error: u8) -> String {
    format!("error {error}")
}
