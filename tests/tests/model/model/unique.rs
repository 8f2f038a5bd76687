//! Who holds a deduplication key, and who gets it next.

use super::{Job, Model, Moment, Place};
use crate::answer::Admitted;
use crate::verb::{Held, Key, Meeting, Slot, Spec};

/// How long it is remembered that a job was merged into another.
const MERGED_FOR: i64 = 10 * 60 * 1_000;

/// How long a parked job isn't looked at.
pub(super) const PARKED_FOR: i64 = 60_000;

/// A key that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) by: Slot,
    /// When it goes by itself, if it has outlived its job.
    pub(crate) until: Option<Moment>,
}

/// How a job holds its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    UntilEnd,
    UntilStart,
    Until(Moment),
    AfterEnd(i64),
}

impl Model {
    /// Who holds a key: the job, and whether it hasn't ended.
    pub(super) fn holder(&self, key: Key) -> Option<(Slot, bool)> {
        let holding = self.keys.get(&key)?;
        let job = self.jobs.get(&holding.by).filter(|_| holding.until.is_none());
        let is_over = job.is_some_and(|job| matches!(job.hold, Hold::Until(until) if until <= self.now()));
        (!is_over || self.next.contains_key(&key)).then_some((holding.by, job.is_some()))
    }

    /// What becomes of an enqueue whose key is held; nothing if it isn't.
    pub(super) fn meet_holder(&mut self, spec: &Spec) -> Option<Admitted> {
        let key = spec.key?;
        let rules = spec.rules;
        let keeps = rules.meeting == Meeting::Keeps && !rules.then_once;
        if let Some((into, _)) = self.merged.get(&spec.slot).filter(|_| !keeps) {
            return Some(Admitted::Replaced(*into));
        }
        let (holder, is_there) = self.holder(key)?;
        let duplicate = Some(Admitted::Duplicate(holder));
        if keeps || !is_there {
            return duplicate;
        }
        if let Some(parked) = self.next.get(&key).copied() {
            return Some(self.take_over_parked(parked, spec));
        }
        let Some(job) = self.jobs.get(&holder) else { return duplicate };
        let (is_active, is_reaped) = (matches!(job.place, Place::Active { .. }), job.reaped.is_some());
        if rules.meeting != Meeting::Keeps && !is_active {
            let answer = self.take_over(holder, spec);
            self.put_off(holder, spec);
            return Some(answer);
        }
        if rules.then_once && (is_active || is_reaped) {
            return Some(self.park(holder, spec));
        }
        duplicate
    }

    fn park(&mut self, behind: Slot, spec: &Spec) -> Admitted {
        let due = self.due_of(spec, None);
        let job = Job {
            place: Place::Parked { look: self.after(PARKED_FOR) },
            behind: Some(behind),
            due: (due > self.now()).then_some(due),
            ..self.job_of(spec)
        };
        self.done.remove(&spec.slot);
        self.jobs.insert(spec.slot, job);
        self.next.extend(spec.key.map(|key| (key, spec.slot)));
        self.events.push(("parked", spec.slot));
        Admitted::Parked(behind)
    }

    fn take_over(&mut self, slot: Slot, spec: &Spec) -> Admitted {
        let expires = spec.expires.map(|wait| self.after(wait));
        if let Some(job) = self.jobs.get_mut(&slot) {
            job.payload = spec.payload;
            job.header = spec.header;
            job.max_attempts = spec.max_attempts;
            job.expires = expires;
            job.reaped = None;
        }
        self.merged.insert(spec.slot, (slot, self.after(MERGED_FOR)));
        self.events.push(("replaced", slot));
        Admitted::Replaced(slot)
    }

    fn take_over_parked(&mut self, slot: Slot, spec: &Spec) -> Admitted {
        let answer = self.take_over(slot, spec);
        let earlier = self.jobs.get(&slot).and_then(|job| job.latest);
        let latest = earlier.or(self.latest_of(spec));
        let (due, now) = (self.due_of(spec, latest), self.now());
        let moves = spec.rules.then_once || is_debounced(spec);
        if let Some(job) = self.jobs.get_mut(&slot).filter(|_| moves) {
            job.latest = latest;
            job.due = (due > now).then_some(due);
        }
        answer
    }

    fn put_off(&mut self, slot: Slot, spec: &Spec) {
        let Some(job) = self.jobs.get(&slot).filter(|_| is_debounced(spec)) else { return };
        // One whose time has come isn't put off any more.
        if job.attempts > 0 || !matches!(job.place, Place::Scheduled { due } if due > self.now()) {
            return;
        }
        let latest = job.latest.or(self.latest_of(spec));
        let due = self.due_of(spec, latest);
        if let Some(job) = self.jobs.get_mut(&slot) {
            job.latest = latest;
        }
        self.put_at(slot, due);
    }

    pub(super) fn latest_of(&self, spec: &Spec) -> Option<Moment> {
        if let Meeting::Debounced { latest } = spec.rules.meeting { Some(self.after(latest)) } else { None }
    }

    /// When an enqueue wants its job to run, but no later than that.
    pub(super) fn due_of(&self, spec: &Spec, latest: Option<Moment>) -> Moment {
        let due = self.after(spec.when.wait());
        latest.or(self.latest_of(spec)).map_or(due, |latest| due.min(latest))
    }

    pub(super) fn hold_of(&self, spec: &Spec) -> Hold {
        match spec.rules.held {
            Held::UntilEnd => Hold::UntilEnd,
            Held::UntilStart => Hold::UntilStart,
            Held::For(window) => Hold::Until(self.after(window)),
            Held::AfterEnd(rest) => Hold::AfterEnd(rest),
        }
    }

    /// Lets the job go on that is parked behind a key, and says whether there was one.
    fn follow(&mut self, key: Key) -> bool {
        if self.awaited.remove(&key) {
            self.slot_is_due = true;
            self.marker = true;
        }
        let Some(slot) = self.next.remove(&key) else { return false };
        self.keys.insert(key, Holding { by: slot, until: None });
        let due = self.jobs.get_mut(&slot).and_then(|job| job.due.take());
        self.put_at(slot, due.unwrap_or_else(|| self.now()));
        true
    }

    /// Frees the key of a job that is taken away before its end, or has started.
    pub(super) fn free_key(&mut self, slot: Slot) {
        self.next.retain(|_, parked| *parked != slot);
        if let Some(key) = self.held_by(slot)
            && !self.follow(key)
        {
            self.keys.remove(&key);
        }
    }

    /// The same for a job that has ended by itself, which may keep its key for a while.
    pub(super) fn end_key(&mut self, slot: Slot) {
        let Some(key) = self.held_by(slot) else { return };
        if self.follow(key) {
            return;
        }
        let until = match self.jobs.get(&slot).map(|job| job.hold) {
            Some(Hold::Until(until)) => Some(until),
            Some(Hold::AfterEnd(rest)) => Some(self.after(rest)),
            _ => None,
        };
        match until.filter(|until| *until > self.now()) {
            Some(until) => drop(self.keys.insert(key, Holding { by: slot, until: Some(until) })),
            None => drop(self.keys.remove(&key)),
        }
    }

    /// The key that a job was enqueued with, if it holds it. One that another job has by now is no concern of it.
    fn held_by(&self, slot: Slot) -> Option<Key> {
        let key = self.jobs.get(&slot)?.key?;
        self.keys.get(&key).filter(|holding| holding.by == slot).map(|_| key)
    }

    /// Takes the key of a revived job again, if nobody else holds it and its time isn't over.
    pub(super) fn take_key_again(&mut self, slot: Slot) {
        let Some(job) = self.jobs.get(&slot) else { return };
        let Some(key) = job.key else { return };
        let is_over = matches!(job.hold, Hold::Until(until) if until <= self.now());
        let is_free = self.holder(key).is_none_or(|(holder, _)| holder == slot);
        if !is_over && is_free && !self.follow(key) {
            self.keys.insert(key, Holding { by: slot, until: None });
        }
    }

    /// What is parked is looked at now and then.
    pub(super) fn look_after_parked(&mut self) {
        let (now, next) = (self.now(), self.after(PARKED_FOR));
        for job in self.jobs.values_mut() {
            if let Place::Parked { look } = &mut job.place
                && *look <= now
            {
                *look = next;
            }
        }
    }
}

fn is_debounced(spec: &Spec) -> bool {
    matches!(spec.rules.meeting, Meeting::Debounced { .. })
}
