//! Who is served next: the lanes of the ring in turn, and the flat line as one of them.

use std::collections::VecDeque;

use super::{Model, Turn};
use crate::verb::{Lane, Slot};

/// What a claim has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) taken: Vec<Slot>,
    pub(super) expired: Vec<Slot>,
}

/// A line that is being served.
struct Line {
    left: VecDeque<Slot>,
    /// Whether it was looked at.
    is_known: bool,
}

impl Line {
    fn of(waiting: Vec<Slot>) -> Self {
        Self { left: waiting.into(), is_known: false }
    }

    fn is_used_up(&self) -> bool {
        self.is_known && self.left.is_empty()
    }
}

impl Model {
    /// How many jobs may start now, whatever waits.
    pub(super) fn room(&self) -> usize {
        let now = self.now();
        if self.whole.paused || self.whole.held.is_some_and(|until| until > now) {
            return 0;
        }
        let slots =
            self.whole.concurrency.map_or(usize::MAX, |limit| (limit as usize).saturating_sub(self.active().len()));
        self.whole.rate.map_or(usize::MAX, |spent| spent.room(now)).min(slots)
    }

    /// Takes up to `max` jobs, or fewer if there is no room; no more than `max` lanes are looked at. Turns the ring.
    pub(super) fn take_in_turn(&mut self, max: usize) -> Found {
        let mut found = Found::default();
        let mut left = max.min(self.room());
        if left == 0 {
            return found;
        }
        let mut flat = Line::of(self.waiting(None));
        let mut lines: Vec<(Lane, Line)> =
            self.ring.iter().map(|lane| (*lane, Line::of(self.waiting(Some(*lane))))).collect();
        let had_lanes = !lines.is_empty();
        let mut later: Vec<Lane> = self.ring.split_off(self.ring.len().min(max));
        let sees_all = later.is_empty();
        let mut front: VecDeque<Lane> = std::mem::take(&mut self.ring).into();
        let mut turn = self.turn.clone().unwrap_or(Turn { ahead: usize::MAX, credit: None });
        turn.ahead = turn.ahead.min(front.len() + later.len());
        turn.credit = turn.credit.filter(|(whose, _)| front.front() == Some(whose));
        let mut took = std::collections::BTreeMap::<Lane, usize>::new();

        while left > 0 {
            let length = front.len() + later.len();
            if turn.ahead == 0 && !flat.is_used_up() {
                let want = if length == 0 { left } else { 1 };
                left -= self.take(&mut flat, want, &mut found);
                turn.ahead = length;
                continue;
            }
            let Some(lane) = front.pop_front() else { break };
            let settings = self.settings(lane);
            let weight = settings.weight.unwrap_or(1) as usize;
            let credit = turn.credit.take().map_or(weight, |(_, credit)| credit.min(weight));
            let so_far = took.get(&lane).copied().unwrap_or(0);
            let by_limit =
                settings.concurrency.map_or(usize::MAX, |limit| (limit as usize).saturating_sub(self.running(lane)));
            let by_rate = settings.rate.map_or(usize::MAX, |spent| spent.room(self.now()));
            let room = by_limit.min(by_rate) - so_far;
            let Some((_, line)) = lines.iter_mut().find(|(of, _)| *of == lane) else { break };
            let got = self.take(line, credit.min(room).min(left), &mut found);
            left -= got;
            took.insert(lane, so_far + got);
            let goes_on = room > got && !line.is_used_up();
            if goes_on && got < credit {
                turn.credit = Some((lane, credit - got));
                front.push_front(lane);
                break;
            }
            turn.ahead = turn.ahead.saturating_sub(1);
            if by_rate == so_far + got {
                self.held_by_rate(lane, so_far + got);
            }
            match (goes_on, sees_all) {
                (true, true) => front.push_back(lane),
                (true, false) => later.push(lane),
                (false, _) => {}
            }
        }
        self.ring = front.into_iter().chain(later).collect();
        if had_lanes {
            self.turn = Some(turn);
        }
        let now = self.now();
        for (lane, jobs) in took {
            if let Some(spent) =
                self.settings.get_mut(&lane).and_then(|settings| settings.rate.as_mut()).filter(|_| jobs > 0)
            {
                spent.spend(jobs, now);
            }
        }
        if let Some(spent) = self.whole.rate.as_mut().filter(|_| !found.taken.is_empty()) {
            spent.spend(found.taken.len(), now);
        }
        found
    }

    /// Takes as many from one line; what has expired is taken besides.
    fn take(&self, line: &mut Line, want: usize, found: &mut Found) -> usize {
        let mut got = 0;
        line.is_known |= want > 0;
        while got < want {
            let Some(slot) = line.left.pop_front() else { break };
            let is_expired = self
                .jobs
                .get(&slot)
                .is_some_and(|job| job.attempts == 0 && job.expires.is_some_and(|expires| expires <= self.now()));
            if is_expired {
                found.expired.push(slot);
            } else {
                found.taken.push(slot);
                got += 1;
            }
        }
        got
    }

    /// The rate of a lane lets nothing more start for now.
    fn held_by_rate(&mut self, lane: Lane, jobs: usize) {
        let now = self.now();
        if let Some(settings) = self.settings.get_mut(&lane) {
            let spent = settings.rate.map(|mut spent| {
                spent.spend(jobs, now);
                spent
            });
            settings.held = spent.map(|spent| spent.next(now));
        }
    }
}
