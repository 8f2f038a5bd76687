//! Lanes: what is set of them, which of them can be served, and in which order they will be.

use std::collections::BTreeMap;

use super::{Model, Moment, Place};
use crate::answer::{Answer, LaneRecord};
use crate::verb::{Lane, Rate, Slot, Tuning};

/// What is set of a lane, or, but for the weight, of the whole queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) paused: bool,
    pub(crate) concurrency: Option<u32>,
    pub(crate) weight: Option<u32>,
    pub(crate) rate: Option<Spent>,
    /// Nothing starts before then.
    pub(crate) held: Option<Moment>,
    /// The same, as far as it isn't for a rate.
    pub(crate) held_by_job: Option<Moment>,
}

/// A rate, and how much of it is spent: the time at which the next job is due if they come evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) rate: Rate,
    pub(crate) tat: Option<Moment>,
}

impl Spent {
    /// The time at which the next job is due, by now. It isn't saved up; and one that lies further ahead than this rate can
    /// lead is of another rate, and says no more than that nothing is saved up.
    fn due(&self, now: Moment) -> Moment {
        let due = self.tat.unwrap_or(now).max(now);
        let furthest = now.at + i64::from(self.rate.burst) * self.rate.gap();
        if due.at > furthest { Moment { at: now.at + self.rate.slack(), step: now.step } } else { due }
    }

    /// How many jobs may start now.
    pub(crate) fn room(&self, now: Moment) -> usize {
        let (slack, gap) = (self.rate.slack(), self.rate.gap());
        usize::try_from((now.at + slack - self.due(now).at).div_euclid(gap) + 1).unwrap_or(0)
    }

    pub(crate) fn spend(&mut self, jobs: usize, now: Moment) {
        let due = self.due(now);
        self.tat = Some(Moment { at: due.at + jobs as i64 * self.rate.gap(), step: due.step });
    }

    /// When it lets the next job start.
    pub(crate) fn next(&self, now: Moment) -> Moment {
        let due = self.due(now);
        Moment { at: due.at - self.rate.slack(), step: due.step }
    }
}

/// Where the turns stand: as one sees it who asks now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// How many lanes come before the flat line.
    pub(crate) ahead: usize,
    /// What the first lane has left of its turn.
    pub(crate) credit: Option<(Lane, usize)>,
}

impl Model {
    pub(crate) fn settings(&self, lane: Lane) -> Settings {
        self.settings.get(&lane).cloned().unwrap_or_default()
    }

    fn settings_mut(&mut self, lane: Option<Lane>) -> &mut Settings {
        lane.map_or(&mut self.whole, |lane| self.settings.entry(lane).or_default())
    }

    /// What waits in a lane, in the order in which it will be claimed.
    pub(crate) fn waiting(&self, lane: Option<Lane>) -> Vec<Slot> {
        let mut waiting: Vec<_> =
            self.jobs.iter().filter(|(_, job)| job.place == Place::Pending && job.lane == lane).collect();
        waiting.sort_by_key(|(slot, job)| (job.priority, **slot));
        waiting.into_iter().map(|(slot, _)| *slot).collect()
    }

    pub(crate) fn running(&self, lane: Lane) -> usize {
        let is_of_it = |job: &&super::Job| job.lane == Some(lane) && matches!(job.place, Place::Active { .. });
        self.jobs.values().filter(is_of_it).count()
    }

    pub(crate) fn can_serve(&self, lane: Lane) -> bool {
        let settings = self.settings(lane);
        let has_room = settings.concurrency.is_none_or(|limit| self.running(lane) < limit as usize);
        has_room && !settings.paused && settings.held.is_none() && !self.waiting(Some(lane)).is_empty()
    }

    /// Whether work could be claimed, if nothing bounds the queue.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting(None).is_empty() || !self.ring.is_empty()
    }

    /// A lane that can be served and isn't in the ring enters it at the end, which wakes a worker.
    pub(super) fn offer(&mut self, lane: Lane) {
        if self.can_serve(lane) && !self.ring.contains(&lane) {
            self.ring.push(lane);
            self.wakes = (self.wakes + 1).min(64);
            self.marker = true;
        }
    }

    /// A lane that can't be served any more leaves the ring.
    pub(super) fn withdraw(&mut self, lane: Lane) {
        if !self.can_serve(lane) {
            self.ring.retain(|in_ring| *in_ring != lane);
        }
    }

    /// After a change from outside.
    fn put_right(&mut self, lane: Lane) {
        self.withdraw(lane);
        self.marker |= self.ring.contains(&lane);
        self.offer(lane);
    }

    /// A job isn't active any more: its lane may go on, and the queue.
    pub(super) fn free_slot(&mut self, lane: Option<Lane>) {
        if let Some(lane) = lane {
            self.offer(lane);
        }
        self.marker |= self.whole.concurrency.is_some();
    }

    /// A job has left its waiting place.
    pub(super) fn leave_line(&mut self, lane: Option<Lane>) {
        if let Some(lane) = lane {
            self.withdraw(lane);
        }
    }

    pub(super) fn pause(&mut self, lane: Option<Lane>) -> Answer {
        self.settings_mut(lane).paused = true;
        if let Some(lane) = lane {
            self.withdraw(lane);
        }
        Answer::None
    }

    pub(super) fn resume(&mut self, lane: Option<Lane>) -> Answer {
        let settings = self.settings_mut(lane);
        settings.paused = false;
        settings.held = None;
        settings.held_by_job = None;
        match lane {
            Some(lane) => self.put_right(lane),
            None => self.marker = true,
        }
        Answer::None
    }

    pub(super) fn tune(&mut self, lane: Option<Lane>, tuning: Tuning) -> Answer {
        let settings = self.settings_mut(lane);
        match tuning {
            Tuning::Concurrency(limit) => settings.concurrency = limit,
            Tuning::Weight(weight) => settings.weight = (weight > 1).then_some(weight),
            Tuning::Rate(rate) => {
                let tat = settings.rate.and_then(|spent| spent.tat);
                settings.rate = rate.map(|rate| Spent { rate, tat });
                settings.held = settings.held_by_job;
            }
        }
        match lane {
            Some(lane) => self.put_right(lane),
            None => self.marker = true,
        }
        Answer::None
    }

    /// Nothing of the lane, or of the queue, starts before then.
    pub(super) fn hold_back(&mut self, lane: Option<Lane>, until: Moment) {
        let settings = self.settings_mut(lane);
        settings.held = Some(settings.held.map_or(until, |held| held.max(until)));
        settings.held_by_job = Some(settings.held_by_job.map_or(until, |held| held.max(until)));
        if let Some(lane) = lane {
            self.withdraw(lane);
        }
    }

    /// The lanes whose time has come, in the order in which it came.
    pub(super) fn let_go(&mut self) {
        self.slot_is_due = false;
        let now = self.now();
        let mut due: Vec<(Moment, Lane)> = Lane::all()
            .filter_map(|lane| Some((self.settings(lane).held?, lane)))
            .filter(|(at, _)| *at <= now)
            .collect();
        due.sort_unstable();
        for (_, lane) in &due {
            let settings = self.settings_mut(Some(*lane));
            settings.held = None;
            settings.held_by_job = None;
        }
        due.iter().for_each(|(_, lane)| self.offer(*lane));
    }

    /// How many jobs wait in which lane.
    pub(crate) fn depths(&self) -> BTreeMap<Lane, usize> {
        let depths = Lane::all().map(|lane| (lane, self.waiting(Some(lane)).len()));
        depths.filter(|(_, depth)| *depth > 0).collect()
    }

    pub(super) fn list_lanes(&self) -> Answer {
        let mut lanes: Vec<(usize, Lane)> = self.depths().into_iter().map(|(lane, depth)| (depth, lane)).collect();
        lanes.sort_unstable();
        lanes.reverse();
        Answer::Lanes(lanes.into_iter().map(|(depth, lane)| (format!("{lane:?}"), depth)).collect())
    }

    pub(super) fn limits(&self) -> Answer {
        let Settings { concurrency, rate, held, .. } = self.whole;
        Answer::Limits { concurrency, rate: rate.map(|spent| spent.rate), held: held.is_some() }
    }

    pub(super) fn look_at_lane(&self, lane: Lane) -> Answer {
        let settings = self.settings(lane);
        Answer::Lane(LaneRecord {
            waiting: self.waiting(Some(lane)),
            active: self.running(lane),
            concurrency: settings.concurrency,
            weight: settings.weight.unwrap_or(1),
            rate: settings.rate.map(|spent| spent.rate),
            paused: settings.paused,
            held: settings.held.is_some(),
        })
    }
}
