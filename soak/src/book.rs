//! What the producers and the operator know: which jobs there must be, and what they must come to.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use emq::JobId;

use crate::{
    jobs::{End, QUEUE, SCRAP},
    keys::Key,
};

/// A job that the server has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What it was asked to do.
    pub(crate) what: String,
    /// What it is to come to, unless it is taken away.
    pub(crate) end: End,
    pub(crate) lane: Option<&'static str>,
    pub(crate) key: Option<Key>,
    /// How long after it was minted it may begin.
    pub(crate) not_before: Duration,
    /// The mark of what its last run is to do.
    pub(crate) mark: Option<u64>,
}

impl Entry {
    /// Of a job without anything special.
    pub(crate) fn new(what: String, end: End) -> Self {
        Self { what, end, lane: None, key: None, not_before: Duration::ZERO, mark: None }
    }

    pub(crate) fn queue(&self) -> &'static str {
        if self.end == End::Any { SCRAP } else { QUEUE }
    }
}

/// What an operator has done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Removed,
    /// The server gave no answer, and the job was gone when it was asked again: it was removed, or it had just been
    /// completed.
    PerhapsRemoved,
    Cancelled,
}

/// A time in which nothing was to start, in ms.
#[derive(Clone, Debug)]
pub(crate) struct Paused {
    pub(crate) queue: &'static str,
    /// Of the whole queue, if there is none.
    pub(crate) lane: Option<&'static str>,
    /// When the pause had been acknowledged, and when the resume was asked for.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// What was active meanwhile, and not at its beginning.
    pub(crate) started: Vec<JobId>,
}

impl fmt::Display for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lane {
            Some(lane) => write!(f, "{}/{lane}", self.queue),
            None => write!(f, "{}", self.queue),
        }
    }
}

/// The book of all producers.
#[derive(Debug, Default)]
pub(crate) struct Book {
    jobs: Mutex<HashMap<JobId, Entry>>,
    taken: Mutex<HashMap<JobId, Taken>>,
    last_tokens: Mutex<HashMap<JobId, u64>>,
    holders: Mutex<Vec<(Key, JobId)>>,
    pauses: Mutex<Vec<Paused>>,
    violations: Mutex<Vec<(Option<JobId>, String)>>,
    /// How many jobs were duplicates of another with their key, did their work in its place, or waited behind it.
    pub(crate) duplicates: AtomicU64,
    pub(crate) replaced: AtomicU64,
    pub(crate) parked: AtomicU64,
    /// How many dead letters were revived.
    pub(crate) revived: AtomicU64,
    /// How many more may have been revived: the server gave no answer.
    pub(crate) perhaps_revived: AtomicU64,
    /// How many cancellations met a job that ran.
    pub(crate) interrupted: AtomicU64,
    /// How many jobs were drained and purged.
    pub(crate) scrapped: AtomicU64,
    /// How often a drain or a purge gave no answer, so that more may have been.
    pub(crate) perhaps_scrapped: AtomicU64,
    /// How often an enqueue was left unknown, or refused for a while, and sent again under its id.
    pub(crate) unknown: AtomicU64,
    /// How often the server was sent a job again that it had accepted.
    pub(crate) repeats: AtomicU64,
    /// How many writes under old tokens were refused.
    pub(crate) haunted: AtomicU64,
    /// No more than is there.
    pub(crate) full: AtomicBool,
    /// No more at all.
    pub(crate) over: AtomicBool,
}

impl Book {
    /// Notes a job that is accepted. It may be for the second time: a repeat.
    pub(crate) fn accept(&self, id: JobId, entry: &Entry) {
        lock(&self.jobs).insert(id, entry.clone());
    }

    /// Notes that a job does now what another was to do, whose mark this is.
    pub(crate) fn replace(&self, id: JobId, mark: Option<u64>) {
        match lock(&self.jobs).get_mut(&id) {
            Some(entry) => entry.mark = mark,
            None => self.violation_of(id, format!("{id} does the work of another, and was never enqueued")),
        }
    }

    /// Notes that a job was taken away.
    pub(crate) fn take(&self, id: JobId, taken: Taken) {
        lock(&self.taken).insert(id, taken);
    }

    /// Notes that no run of a job may begin with a newer token.
    pub(crate) fn last_token(&self, id: JobId, token: u64) {
        lock(&self.last_tokens).insert(id, token);
    }

    /// Notes that this job was named as the holder of a key.
    pub(crate) fn holder(&self, key: Key, holder: JobId) {
        lock(&self.holders).push((key, holder));
    }

    pub(crate) fn pause(&self, paused: Paused) {
        lock(&self.pauses).push(paused);
    }

    pub(crate) fn violation(&self, what: String) {
        eprintln!("soak: VIOLATION: {what}");
        lock(&self.violations).push((None, what));
    }

    pub(crate) fn violation_of(&self, id: JobId, what: String) {
        eprintln!("soak: VIOLATION: {what}");
        lock(&self.violations).push((Some(id), what));
    }

    pub(crate) fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Entry>> {
        lock(&self.jobs)
    }

    pub(crate) fn taken(&self) -> MutexGuard<'_, HashMap<JobId, Taken>> {
        lock(&self.taken)
    }

    pub(crate) fn last_tokens(&self) -> HashMap<JobId, u64> {
        lock(&self.last_tokens).clone()
    }

    pub(crate) fn holders(&self) -> Vec<(Key, JobId)> {
        lock(&self.holders).clone()
    }

    pub(crate) fn pauses(&self) -> Vec<Paused> {
        lock(&self.pauses).clone()
    }

    pub(crate) fn violations(&self) -> Vec<(Option<JobId>, String)> {
        lock(&self.violations).clone()
    }

    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
