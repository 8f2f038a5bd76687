use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

use super::{line::Line, stats::Counters};

/// The places that a worker has for jobs.
#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    /// By jobs in hand, and by those that are being claimed.
    taken: AtomicUsize,
    /// Of those, by jobs that have run and are being completed: others are claimed in their places already.
    leaving: AtomicUsize,
    counters: Arc<Counters>,
    freed: Arc<Notify>,
}

impl Slots {
    pub(super) fn new(limit: usize, counters: Arc<Counters>) -> Self {
        let (taken, leaving) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Inner { limit, taken, leaving, counters, freed: Arc::default() }))
    }

    pub(super) fn limit(&self) -> usize {
        self.0.limit
    }

    /// Told when there is something new to look at: a slot came free, or a queue may have work. It remembers one such
    /// event, and only the fetcher waits for it, so none is missed.
    pub(super) fn freed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.freed)
    }

    pub(super) fn free(&self) -> usize {
        self.0.limit.saturating_sub(self.0.taken.load(Ordering::Relaxed))
    }

    /// How many jobs of this line may be claimed if so many in hand leave, besides those that are leaving.
    pub(super) fn room(&self, line: &Line, leave: usize) -> usize {
        let leave = leave + self.0.leaving.load(Ordering::Relaxed);
        let free = self.0.limit.saturating_add(leave).saturating_sub(self.0.taken.load(Ordering::Relaxed));
        free.min(line.room(leave))
    }

    /// Keeps places for jobs of this line that are about to be claimed.
    pub(super) fn promise(&self, line: &Arc<Line>, count: usize) -> Promised {
        self.0.taken.fetch_add(count, Ordering::Relaxed);
        line.took(count);
        Promised { slots: self.clone(), line: Arc::clone(line), count }
    }

    /// A job in hand has run and is being completed, for as long as what this answers isn't dropped.
    pub(super) fn leave(&self) -> Leaving {
        self.0.leaving.fetch_add(1, Ordering::Relaxed);
        Leaving(self.clone())
    }
}

/// Places for jobs that are being claimed. Those that aren't needed come free when it is dropped.
#[derive(Debug)]
pub(super) struct Promised {
    slots: Slots,
    line: Arc<Line>,
    count: usize,
}

impl Promised {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A slot for a job that has come, if there is a place.
    pub(super) fn take(&mut self) -> Option<Slot> {
        self.count = self.count.checked_sub(1)?;
        self.slots.0.counters.took();
        Some(Slot { slots: self.slots.clone(), line: Arc::clone(&self.line) })
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.line.let_go(self.count);
        self.slots.0.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// A job in hand.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    line: Arc<Line>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Inner { taken, counters, freed, .. } = &*self.slots.0;
        self.line.let_go(1);
        taken.fetch_sub(1, Ordering::Relaxed);
        counters.let_go();
        freed.notify_one();
    }
}

/// A job in hand that is being completed.
#[derive(Debug)]
pub(super) struct Leaving(Slots);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.0.leaving.fetch_sub(1, Ordering::Relaxed);
    }
}
