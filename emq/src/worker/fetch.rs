//! Claiming: never more than there is room for, and nothing while the stack isn't ready.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::{Line, Tasks, registry::Names, slots::Slots, stats::Counters};
use crate::{
    layer::{Delivery, stack::Stack},
    queue::Claimer,
    store::{Batch, Claimed, MAX_BATCH},
};

/// The pause after a claim that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a claim under way may still take after the worker was told to stop.
const LAST_CLAIM: Duration = Duration::from_secs(1);

/// The loop that claims jobs and sends them through the stack.
pub(super) struct Fetcher {
    pub(super) stack: Stack,
    pub(super) registry: Names,
    pub(super) lines: Vec<(Arc<Line>, Claimer)>,
    pub(super) slots: Slots,
    pub(super) counters: Arc<Counters>,
    pub(super) runs: Tasks,
    pub(super) stop: CancellationToken,
}

impl Fetcher {
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let freed = self.slots.freed();
        let mut next = 0;
        // How many jobs the stack took at once the last time, twice over: a user's layer may have less room than the
        // worker, and says so only when it is asked.
        let mut appetite = MAX_BATCH;
        while !stop.is_cancelled() {
            if self.slots.free() == 0 {
                stop.run_until_cancelled(freed.notified()).await;
                continue;
            }
            if stop.run_until_cancelled(self.ready()).await.is_none() {
                break;
            }
            match self.next_line(next) {
                Some(line) => {
                    next = line + 1;
                    appetite = self.claim(line, appetite).await;
                }
                None => self.sleep().await,
            }
        }
        self.leave().await;
    }

    async fn ready(&mut self) {
        let Ok(()) = poll_fn(|cx| self.stack.poll_ready(cx)).await;
    }

    async fn is_ready_at_once(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.stack.poll_ready(cx).is_ready())).await
    }

    /// The next queue in turn that may have work and has room.
    fn next_line(&self, from: usize) -> Option<usize> {
        let count = self.lines.len();
        (0..count).map(|n| (from + n) % count).find(|at| {
            let line = &self.lines[*at].0;
            line.is_hot() && line.room() > 0
        })
    }

    /// Waits until a slot comes free or a queue may have work.
    async fn sleep(&self) {
        let parked = || self.lines.iter().map(|(line, _)| line).filter(|line| line.room() > 0);
        parked().for_each(|line| line.park());
        self.stop.run_until_cancelled(self.slots.freed().notified()).await;
        self.lines.iter().for_each(|(line, _)| line.unpark());
    }

    async fn claim(&mut self, at: usize, appetite: usize) -> usize {
        let free = self.slots.free();
        let (line, claimer) = &mut self.lines[at];
        let max = free.min(line.room()).min(appetite).min(MAX_BATCH);
        line.cool();
        let batch = tokio::select! {
            batch = claimer.claim(max) => batch,
            // What such a claim takes is given to others when its leases run out.
            () = stopped_for(&self.stop, LAST_CLAIM) => return appetite,
        };
        match batch {
            Ok(batch) => self.dispatch(at, batch, appetite).await,
            Err(error) => {
                tracing::warn!(%error, queue = %line.store.name(), "claiming failed");
                line.heat();
                self.stop.run_until_cancelled(sleep(PAUSE)).await;
                appetite
            }
        }
    }

    async fn dispatch(&mut self, at: usize, batch: Batch, appetite: usize) -> usize {
        let line = Arc::clone(&self.lines[at].0);
        self.counters.claimed(batch.jobs.len(), batch.dropped);
        if batch.dropped > 0 {
            tracing::warn!(queue = %line.store.name(), ids = batch.dropped, "dropped ids that have no job");
        }
        if batch.more {
            line.heat();
        }
        line.expect(batch.next_event);
        let taken = batch.jobs.len();
        let mut jobs = batch.jobs.into_iter();
        for n in 0..taken {
            // For the first one the stack was made ready before the claim.
            if n > 0 && !self.is_ready_at_once().await {
                self.give_back(&line, jobs.collect());
                return n;
            }
            if let Some(job) = jobs.next() {
                self.start(&line, job);
            }
        }
        if taken >= appetite { appetite.saturating_mul(2).min(MAX_BATCH) } else { appetite }
    }

    fn start(&mut self, line: &Arc<Line>, mut job: Claimed) {
        let queue = line.store.name();
        if job.name.is_none() {
            job.name = self.registry.unnamed(queue).map(str::to_owned);
        }
        let options = self.registry.options(job.name.as_deref().unwrap_or_default());
        let run = self.stack.call(Delivery::new(queue, job, options));
        let slot = self.slots.take(line);
        let counters = Arc::clone(&self.counters);
        self.runs.spawn(async move {
            let Ok(ended) = run.await;
            counters.ended(&ended);
            drop(slot);
        });
    }

    /// Gives jobs back that the stack has no room for: others may have it.
    fn give_back(&self, line: &Arc<Line>, jobs: Vec<Claimed>) {
        let store = line.store.clone();
        let counters = Arc::clone(&self.counters);
        let line = Arc::clone(line);
        self.runs.spawn(async move {
            for job in jobs {
                match store.release(job.lease()).await {
                    Ok(_) => counters.released(),
                    Err(error) => tracing::warn!(%error, id = %job.lease().id(), "the job will come back later"),
                }
            }
            line.heat();
        });
    }

    async fn leave(self) {
        let deadline = Instant::now() + LAST_CLAIM;
        for (_, claimer) in self.lines {
            let left = tokio::time::timeout_at(deadline, claimer.leave()).await;
            tracing::debug!(?left, "left the queue");
        }
    }
}

async fn stopped_for(stop: &CancellationToken, longer: Duration) {
    stop.cancelled().await;
    sleep(longer).await;
}
