//! How many jobs are deleted at once.

use super::{Model, Place};
use crate::answer::Answer;
use crate::verb::{Shelf, Slot};

impl Model {
    /// Slice by slice, until there is nothing behind the jobs that are too young.
    pub(super) fn purge(&mut self, shelf: Shelf, age: i64) -> Answer {
        let (mut removed, mut kept) = (0, 0);
        loop {
            let slice: Vec<Slot> = self.on(shelf).into_iter().skip(kept).collect();
            if slice.is_empty() {
                return Answer::Purged(removed);
            }
            let (going, staying): (Vec<Slot>, Vec<Slot>) = slice.into_iter().partition(|slot| self.is_old(*slot, age));
            // All are taken out before anybody follows one of them.
            let gone = Place::Dead { since: self.now() };
            going.iter().for_each(|slot| self.take_out(*slot, gone));
            going.iter().for_each(|slot| self.delete(*slot));
            removed += going.len();
            kept += staying.len();
        }
    }

    /// Since its death, or since its id was minted.
    fn is_old(&self, slot: Slot, age: i64) -> bool {
        let dead = self.jobs.get(&slot).map(|job| job.place);
        age == 0
            || match dead {
                Some(Place::Dead { since }) => since.at + age <= self.clock,
                _ => slot.was_minted_long_ago(),
            }
    }

    /// Nothing stays of the queue but what goes by itself: what was merged.
    pub(super) fn obliterate(&mut self, force: bool) -> Answer {
        if !force && !self.active().is_empty() {
            return Answer::Obliterated(None);
        }
        let removed = self.jobs.len() + self.done.len();
        let emptied = Self { step: self.step, clock: self.clock, merged: self.merged.clone(), ..Self::default() };
        let before = std::mem::replace(self, emptied);
        self.handed = before.handed;
        for (worker, before) in self.workers.iter_mut().zip(before.workers) {
            (worker.request, worker.owed) = (before.request, before.owed);
        }
        Answer::Obliterated(Some(removed))
    }
}
