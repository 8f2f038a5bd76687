use std::sync::Arc;

use tokio::sync::Notify;

use super::{line::Line, stats::Counters};

/// How many jobs a worker may have in hand, and how many it has.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    limit: usize,
    counters: Arc<Counters>,
    freed: Arc<Notify>,
}

impl Slots {
    pub(super) fn new(limit: usize, counters: Arc<Counters>) -> Self {
        Self { limit, counters, freed: Arc::default() }
    }

    /// Told when there is something new to look at: a slot came free, or a queue may have work. It remembers one such
    /// event, and only the fetcher waits for it, so none is missed.
    pub(super) fn freed(&self) -> Arc<Notify> {
        Arc::clone(&self.freed)
    }

    pub(super) fn free(&self) -> usize {
        self.limit.saturating_sub(self.counters.in_hand())
    }

    /// Takes a slot for a job of this line.
    pub(super) fn take(&self, line: &Arc<Line>) -> Slot {
        self.counters.took();
        line.took();
        Slot { counters: Arc::clone(&self.counters), line: Arc::clone(line), freed: Arc::clone(&self.freed) }
    }
}

/// A job in hand.
#[derive(Debug)]
pub(super) struct Slot {
    counters: Arc<Counters>,
    line: Arc<Line>,
    freed: Arc<Notify>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.line.let_go();
        self.counters.let_go();
        self.freed.notify_one();
    }
}
