//! What the producers know: which jobs there must be, and what they must come to.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use emq::JobId;

/// A job that the server has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What it was asked to do.
    pub(crate) what: String,
    /// After how many failures it is to be a dead letter; `None` if it is to succeed.
    pub(crate) dies_after: Option<u32>,
    pub(crate) key: Option<String>,
}

/// The book of all producers.
#[derive(Debug, Default)]
pub(crate) struct Book {
    jobs: Mutex<HashMap<JobId, Entry>>,
    duplicates: Mutex<Vec<(String, JobId)>>,
    violations: Mutex<Vec<(Option<JobId>, String)>>,
    /// How often an enqueue was left unknown, and sent again under its id.
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
