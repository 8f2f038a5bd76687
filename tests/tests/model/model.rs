//! The model: one queue as `docs/lifecycle.md` describes it, in plain Rust and with a clock of its own.
//!
//! It knows no script and no key. Each verb answers what the server has to answer, and changes the model as the server has
//! to change.

mod admit;
mod claim;
mod lanes;
mod look;
mod moment;
mod purge;
mod repeat;
mod report;
mod settle;
mod sweep;
mod turns;
mod unique;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(crate) use self::lanes::{Settings, Spent, Turn};
pub(crate) use self::look::{headers, payload, state_text};
pub(crate) use self::moment::Moment;
pub(crate) use self::repeat::Recurring;
pub(crate) use self::report::line_text;
pub(crate) use self::settle::{LEAST_RETENTION, error_text};
pub(crate) use self::unique::{Hold, Holding};
use crate::answer::Answer;
use crate::verb::{EXCHANGER, Key, Lane, Name, Slot, Verb};

/// The name of the jobs' type.
pub(crate) const NAME: &str = "model";

/// The value of the one header that a job may have; its name is `origin`.
pub(crate) const HEADER: &str = "north";

#[derive(Clone, Default)]
pub(crate) struct Model {
    /// How many verbs there were.
    pub(crate) step: u32,
    /// How long the queue has been there, in ms.
    pub(crate) clock: i64,
    pub(crate) jobs: BTreeMap<Slot, Job>,
    /// The finished, as long as they are remembered.
    pub(crate) done: BTreeMap<Slot, Finished>,
    pub(crate) results: BTreeMap<Slot, (u8, Moment)>,
    /// Who holds which deduplication key.
    pub(crate) keys: BTreeMap<Key, Holding>,
    /// Who is parked behind which of them.
    pub(crate) next: BTreeMap<Key, Slot>,
    /// The keys of jobs for whose end the next slot of a recurring job waits.
    pub(crate) awaited: BTreeSet<Key>,
    /// Such a job has ended, and nobody has looked since.
    pub(crate) slot_is_due: bool,
    /// The enqueues that were merged into a job, and until when that is remembered.
    pub(crate) merged: BTreeMap<Slot, (Slot, Moment)>,
    pub(crate) workers: [Worker; EXCHANGER + 1],
    /// Whether a waiting worker would be woken.
    pub(crate) marker: bool,
    /// What is set of the queue.
    pub(crate) whole: Settings,
    pub(crate) settings: BTreeMap<Lane, Settings>,
    /// The lanes that can be served, in the order in which they will be.
    pub(crate) ring: Vec<Lane>,
    pub(crate) turn: Option<Turn>,
    /// How often a lane entered the ring, as those of another implementation are told; 64 at most.
    pub(crate) wakes: usize,
    /// How many it ever had, once it had several.
    pub(crate) partitions: Option<u32>,
    pub(crate) recurring: BTreeMap<Name, Recurring>,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// What the last verb told those who listen.
    pub(crate) events: Vec<(&'static str, Slot)>,
    /// Every token that was ever handed out.
    pub(crate) handed: BTreeMap<Slot, u64>,
}

/// A job that hasn't finished.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) place: Place,
    pub(crate) payload: u8,
    pub(crate) key: Option<Key>,
    /// Of a recurring job.
    pub(crate) slot: Option<i64>,
    pub(crate) hold: Hold,
    /// Beyond which it isn't put off.
    pub(crate) latest: Option<Moment>,
    /// Behind whom it was parked, and when it may run if it still is.
    pub(crate) behind: Option<Slot>,
    pub(crate) due: Option<Moment>,
    pub(crate) priority: i32,
    /// It was given one after it was enqueued, be it the default.
    pub(crate) priority_is_written: bool,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) header: bool,
    /// It was enqueued with more than its payload, a lane and a priority.
    pub(crate) has_more: bool,
    pub(crate) lane: Option<Lane>,
    /// From then on it isn't run any more, if it never was.
    pub(crate) expires: Option<Moment>,
    /// How often it was claimed: the token of its last claim.
    pub(crate) attempts: u64,
    pub(crate) failures: u32,
    pub(crate) stalled: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) worker: Option<usize>,
    /// The reaper took it from the holder of this token, and nobody has it yet.
    pub(crate) reaped: Option<u64>,
    /// Somebody has cancelled it while it was held.
    pub(crate) cancel: bool,
    /// What happened last outside of a claim, and under which token: a caller who repeats it is told so.
    pub(crate) settled: Option<String>,
    pub(crate) progress: Option<u8>,
    pub(crate) log: Vec<u8>,
    /// The last line, and under which token it was logged.
    pub(crate) logged: Option<(u64, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Pending,
    Active { until: Moment },
    Scheduled { due: Moment },
    Parked { look: Moment },
    Dead { since: Moment },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// From then on it may be forgotten.
    pub(crate) until: Moment,
    pub(crate) how: Ended,
}

/// How many tokens a completion marker can tell apart.
pub(crate) const MARKS: u64 = 1022;

/// How a job ended that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was completed under this token.
    Done(u64),
    Removed,
    Cancelled,
}

impl Ended {
    /// The 1024th parts by which its time says so: of a completion they are made from the token.
    pub(crate) fn mark(self) -> u64 {
        match self {
            Self::Done(token) => token % MARKS + 1,
            Self::Removed => 0,
            Self::Cancelled => MARKS + 1,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Worker {
    /// The number of its latest claim.
    pub(crate) request: u64,
    /// Whether the answer to that claim is still owed.
    pub(crate) owed: bool,
    /// The last claim that brought it something, as the server remembers it.
    pub(crate) note: Option<Note>,
}

#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) request: u64,
    pub(crate) at: Moment,
    pub(crate) took: Vec<(Slot, u64)>,
}

/// Short, since it is written beside the seeds of sequences that failed.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a queue of {} jobs", self.jobs.len())
    }
}

impl Model {
    pub(crate) fn apply(&mut self, verb: &Verb) -> Answer {
        self.step += 1;
        self.events.clear();
        match verb {
            Verb::Enqueue(spec) => self.enqueue(std::slice::from_ref(spec)),
            Verb::EnqueueMany(specs) => self.enqueue(specs),
            Verb::Claim { worker, max, lease, lost } => self.claim(*worker, *max, *lease, *lost),
            Verb::Leave { worker } => self.leave(*worker),
            Verb::Complete(done) => Answer::Settled(self.complete(done)),
            Verb::CompleteMany(done) => Answer::Completed(done.iter().map(|done| self.complete(done)).collect()),
            Verb::Exchange { done, max, lease, lost } => self.exchange(done, *max, *lease, *lost),
            Verb::Progress { right, value } => self.progress(*right, *value),
            Verb::Log { right, line } => self.log(*right, *line),
            Verb::Logs(slot) => self.logs(*slot),
            Verb::Settle { right, how } => Answer::Settled(self.settle(*right, *how)),
            Verb::Extend { rights, term } => self.extend(rights, *term),
            Verb::Promote => self.promote(),
            Verb::Reap { max_stalled } => self.reap(*max_stalled),
            Verb::Beat { max_stalled } => self.beat(*max_stalled),
            Verb::Revive(slot) => Answer::Revived(self.revive(*slot)),
            Verb::Cancel(slot) => Answer::Cancelled(self.cancel(*slot)),
            Verb::Update { slot, payload, priority, when } => {
                Answer::Updated(self.update(*slot, *payload, *priority, *when))
            }
            Verb::Remove(slot) => Answer::Removed(self.remove(*slot)),
            Verb::Trim { age, count } => self.trim(*age, *count),
            Verb::Counts => self.counts(),
            Verb::Look(slot) => self.look(*slot),
            Verb::List { shelf, offset, count } => self.list(*shelf, *offset, *count),
            Verb::Pause(lane) => self.pause(*lane),
            Verb::Resume(lane) => self.resume(*lane),
            Verb::Tune { lane, tuning } => self.tune(*lane, *tuning),
            Verb::Reassign(slot, lane) => Answer::Reassigned(self.reassign(*slot, *lane)),
            Verb::DrainLane(lane) => self.drain_lane(*lane),
            Verb::LookAtLane(lane) => self.look_at_lane(*lane),
            Verb::ListLanes => self.list_lanes(),
            Verb::Partitions(at_least) => {
                self.partitions = self.partitions.max(Some(*at_least).filter(|n| *n > 1));
                Answer::Partitions(self.partitions.unwrap_or(1))
            }
            Verb::Limits => self.limits(),
            Verb::Purge { shelf, age } => self.purge(*shelf, *age),
            Verb::Obliterate { force } => self.obliterate(*force),
            Verb::Repeat(repeat) => self.repeat(repeat),
            Verb::TakeMarker => Answer::Marker(std::mem::take(&mut self.marker)),
            Verb::Advance(wait) => self.advance(*wait),
        }
    }

    /// The present, and the moment after a wait.
    pub(crate) fn now(&self) -> Moment {
        self.after(0)
    }

    pub(crate) fn after(&self, wait: i64) -> Moment {
        Moment { at: self.clock + wait, step: self.step }
    }

    fn advance(&mut self, wait: i64) -> Answer {
        self.clock += wait;
        let now = self.now();
        self.results.retain(|_, (_, until)| *until > now);
        self.merged.retain(|_, (_, until)| *until > now);
        self.keys.retain(|_, holding| holding.until.is_none_or(|until| until > now));
        Answer::None
    }

    /// Puts a job where it waits to be claimed, which wakes a worker, unless it is the first of a lane that can't be served.
    fn put_waiting(&mut self, slot: Slot) {
        let Some(job) = self.jobs.get_mut(&slot) else { return };
        job.place = Place::Pending;
        let lane = job.lane;
        match lane {
            Some(lane) if self.waiting(Some(lane)).len() == 1 => self.offer(lane),
            _ => self.marker = true,
        }
    }

    /// Takes a job from where it is active or waits, for another place.
    fn take_out(&mut self, slot: Slot, to: Place) {
        let Some(job) = self.jobs.get_mut(&slot) else { return };
        let (from, lane) = (std::mem::replace(&mut job.place, to), job.lane);
        match from {
            Place::Active { .. } => self.free_slot(lane),
            Place::Pending => self.leave_line(lane),
            Place::Scheduled { .. } | Place::Parked { .. } | Place::Dead { .. } => {}
        }
    }

    /// Puts a job on the schedule. Who sleeps until the next one is due has to learn of an earlier one.
    fn put_scheduled(&mut self, slot: Slot, due: Moment) {
        if let Some(job) = self.jobs.get_mut(&slot) {
            job.place = Place::Scheduled { due };
        }
        if self.scheduled().first().is_some_and(|(_, first)| *first == slot) {
            self.marker = true;
        }
    }

    /// Puts a job where it belongs that may run from then on.
    fn put_at(&mut self, slot: Slot, due: Moment) {
        if due > self.now() {
            self.put_scheduled(slot, due);
        } else {
            self.put_waiting(slot);
        }
    }

    /// Makes a job a dead letter, which is an end for its key.
    fn put_dead(&mut self, slot: Slot) {
        let since = self.now();
        if let Some(job) = self.jobs.get_mut(&slot) {
            job.place = Place::Dead { since };
        }
        self.end_key(slot);
        self.failed += 1;
        self.events.push(("dead", slot));
    }

    /// Deletes a job, and remembers its id for a while.
    fn forget(&mut self, slot: Slot, remembered: Option<Finished>) {
        self.jobs.remove(&slot);
        if let Some(finished) = remembered {
            self.done.insert(slot, finished);
        }
    }
}
