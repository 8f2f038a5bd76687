//! What the producers and the operator know: which jobs there must be, and what they must come to.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use emq::JobId;

use crate::jobs::End;

/// A job that the server has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What it was asked to do.
    pub(crate) what: String,
    /// What it is to come to, unless it is removed.
    pub(crate) end: End,
    pub(crate) key: Option<String>,
}

/// What the server has said of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Certain,
    /// It gave no answer, and the job was gone when it was asked again: it was removed, or it had just been completed.
    Possible,
}

/// The book of all producers.
#[derive(Debug, Default)]
pub(crate) struct Book {
    jobs: Mutex<HashMap<JobId, Entry>>,
    removals: Mutex<HashMap<JobId, Removal>>,
    duplicates: Mutex<Vec<(String, JobId)>>,
    violations: Mutex<Vec<(Option<JobId>, String)>>,
    /// How many dead letters were revived.
    pub(crate) revived: AtomicU64,
    /// How many more may have been revived: the server gave no answer.
    pub(crate) perhaps_revived: AtomicU64,
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

    /// Notes that a job was removed.
    pub(crate) fn remove(&self, id: JobId, removal: Removal) {
        lock(&self.removals).insert(id, removal);
    }

    /// Notes that a job with this key wasn't taken, since another has it.
    pub(crate) fn duplicate(&self, key: String, holder: JobId) {
        lock(&self.duplicates).push((key, holder));
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

    pub(crate) fn removals(&self) -> MutexGuard<'_, HashMap<JobId, Removal>> {
        lock(&self.removals)
    }

    pub(crate) fn duplicates(&self) -> Vec<(String, JobId)> {
        lock(&self.duplicates).clone()
    }

    pub(crate) fn violations(&self) -> Vec<(Option<JobId>, String)> {
        lock(&self.violations).clone()
    }

    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
