//! What the beat and operators do.

use emq::{Cancelled, Reassigned, Removed, Revived, Updated};

use super::{Ended, Finished, Model, Moment, Place};
use crate::answer::Answer;
use crate::verb::{HOUR, Lane, Slot, When};

/// For how long the id of a deleted job stays taken, and for how long a silent worker's last claim is kept.
const KEPT: i64 = HOUR;

impl Model {
    pub(super) fn promote(&mut self) -> Answer {
        let now = self.now();
        let due: Vec<Slot> =
            self.scheduled().into_iter().filter(|(due, _)| *due <= now).map(|(_, slot)| slot).collect();
        due.iter().for_each(|slot| self.put_waiting(*slot));
        self.let_go();
        self.look_after_parked();
        // Makes good a marker that got lost.
        self.marker |= self.has_work();
        Answer::Promoted(due.len() as u64)
    }

    pub(super) fn reap(&mut self, max_stalled: Option<u32>) -> Answer {
        let now = self.now();
        let expired: Vec<(Moment, Slot)> = self.active().into_iter().filter(|(until, _)| *until <= now).collect();
        let (mut recovered, mut dead, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
        for (_, slot) in expired {
            let Some(job) = self.jobs.get_mut(&slot) else { continue };
            if job.cancel {
                self.end_as_cancelled(slot);
                cancelled.push(slot);
                continue;
            }
            job.stalled += 1;
            job.worker = None;
            job.settled = None;
            let is_last = max_stalled.is_some_and(|max| job.stalled >= max);
            if is_last {
                job.last_error = Some("stalled".to_owned());
            } else {
                job.reaped = Some(job.attempts);
            }
            self.take_out(slot, Place::Scheduled { due: now });
            if is_last {
                self.put_dead(slot);
                dead.push(slot);
            } else {
                self.put_waiting(slot);
                self.events.push(("stalled", slot));
                recovered.push(slot);
            }
        }
        Answer::Reaped { recovered, dead, cancelled }
    }

    pub(super) fn revive(&mut self, slot: Slot) -> Revived {
        let Some(job) = self.jobs.get_mut(&slot) else { return Revived::Gone };
        if !matches!(job.place, Place::Dead { .. }) {
            return Revived::NotDead;
        }
        job.failures = 0;
        job.stalled = 0;
        job.settled = Some("revive".to_owned());
        job.expires = None;
        self.take_key_again(slot);
        self.put_waiting(slot);
        self.events.push(("revived", slot));
        Revived::Revived
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Removed {
        let Some(job) = self.jobs.get(&slot) else { return Removed::Gone };
        if matches!(job.place, Place::Active { .. }) {
            return Removed::Active;
        }
        self.take_out(slot, Place::Dead { since: self.now() });
        self.delete(slot);
        Removed::Removed
    }

    /// Deletes a job that was taken from its place. Under an id that comes again, tokens begin at 1 again: only one that
    /// nobody ever had a token of is free at once.
    pub(super) fn delete(&mut self, slot: Slot) {
        self.free_key(slot);
        let was_claimed = self.jobs.get(&slot).is_some_and(|job| job.attempts > 0);
        self.forget(slot, was_claimed.then(|| self.deleted()));
        self.events.push(("removed", slot));
    }

    pub(super) fn cancel(&mut self, slot: Slot) -> Cancelled {
        let Some(job) = self.jobs.get_mut(&slot) else {
            let before = self.done.get(&slot).is_some_and(|finished| finished.how == Ended::Cancelled);
            return if before { Cancelled::AtOnce } else { Cancelled::Gone };
        };
        if matches!(job.place, Place::Active { .. }) {
            job.cancel = true;
            return Cancelled::Asked;
        }
        self.end_as_cancelled(slot);
        Cancelled::AtOnce
    }

    /// Whatever it was, it never runs again.
    pub(super) fn end_as_cancelled(&mut self, slot: Slot) {
        self.take_out(slot, Place::Dead { since: self.now() });
        self.free_key(slot);
        self.forget(slot, Some(Finished { until: self.after(KEPT), how: Ended::Cancelled }));
        self.events.push(("cancelled", slot));
    }

    pub(super) fn update(
        &mut self,
        slot: Slot,
        payload: Option<u8>,
        priority: Option<i32>,
        when: Option<When>,
    ) -> Updated {
        let Some(job) = self.jobs.get_mut(&slot) else { return Updated::Gone };
        let due = match job.place {
            Place::Active { .. } => return Updated::Active,
            Place::Dead { .. } => return Updated::Dead,
            Place::Scheduled { due } => Some(due),
            Place::Parked { .. } => job.due,
            Place::Pending => None,
        };
        job.payload = payload.unwrap_or(job.payload);
        // Who had lost the job hasn't seen what it is now, and can't settle it any more.
        job.reaped = None;
        let is_parked = matches!(job.place, Place::Parked { .. });
        if let Some(priority) = priority {
            job.priority = priority;
            job.priority_is_written = true;
        }
        let now = self.now();
        let due = match when {
            None => due,
            Some(When::Now) => None,
            Some(When::After(wait) | When::At(wait)) => Some(self.after(wait)),
        };
        if is_parked {
            if let Some(job) = self.jobs.get_mut(&slot) {
                job.due = due.filter(|due| *due > now);
            }
            return Updated::Updated;
        }
        self.take_out(slot, Place::Scheduled { due: now });
        match due.filter(|due| due.at > now.at) {
            Some(due) => self.put_scheduled(slot, due),
            None => self.put_waiting(slot),
        }
        Updated::Updated
    }

    pub(super) fn reassign(&mut self, slot: Slot, lane: Option<Lane>) -> Reassigned {
        let Some(job) = self.jobs.get(&slot) else { return Reassigned::Gone };
        if matches!(job.place, Place::Active { .. }) {
            return Reassigned::Active;
        }
        if job.lane == lane {
            return Reassigned::Reassigned;
        }
        let place = job.place;
        self.take_out(slot, Place::Scheduled { due: self.now() });
        if let Some(job) = self.jobs.get_mut(&slot) {
            job.lane = lane;
            job.place = place;
        }
        if place == Place::Pending {
            self.put_waiting(slot);
        }
        Reassigned::Reassigned
    }

    pub(super) fn drain_lane(&mut self, lane: Lane) -> Answer {
        let waiting = self.waiting(Some(lane));
        // All are taken out before anybody follows one of them.
        let gone = Place::Dead { since: self.now() };
        waiting.iter().for_each(|slot| self.take_out(*slot, gone));
        waiting.iter().for_each(|slot| self.delete(*slot));
        Answer::Drained { deleted: waiting.len(), left: self.waiting(Some(lane)).len() }
    }

    pub(super) fn trim(&mut self, age: i64, count: u64) -> Answer {
        let now = self.now();
        let before = self.done.len();
        self.done.retain(|_, finished| finished.until > now);
        let forgotten = (before - self.done.len()) as u64;

        let letters = self.dead();
        let over = (letters.len() as u64).saturating_sub(count);
        let going: Vec<Slot> = if over > 0 {
            letters.iter().take(over as usize).map(|(_, slot)| *slot).collect()
        } else {
            letters.iter().filter(|(since, _)| since.at + age <= now.at).map(|(_, slot)| *slot).collect()
        };
        for slot in &going {
            self.forget(*slot, Some(self.deleted()));
            self.events.push(("removed", *slot));
        }

        // Who looks after the lanes wakes a worker for each that can be served.
        self.marker |= !self.ring.is_empty();
        for worker in &mut self.workers {
            worker.note.take_if(|note| note.at.at + KEPT <= now.at);
        }
        Answer::Trimmed { forgotten, dead: going.len() as u64, more: over > 0 }
    }

    fn deleted(&self) -> Finished {
        Finished { until: self.after(KEPT), how: Ended::Removed }
    }
}
