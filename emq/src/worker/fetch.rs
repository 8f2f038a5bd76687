//! Claiming: never more than there is room for, and nothing while the stack isn't ready.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::{
    Tasks,
    appetite::Appetite,
    exchange::{Asking, Claimed},
    line::Line,
    order::Order,
    registry::Names,
    slots::Slots,
    stats::Counters,
};
use crate::{
    inject::Reporter,
    layer::{Delivery, stack::Stack},
    store::{self, CallError, Lease},
};

/// The pause of a queue after a claim that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a claim under way may still take after the worker was told to stop.
const LAST_CLAIM: Duration = Duration::from_secs(1);

/// How long leaving the queues may take.
const LEAVE: Duration = Duration::from_secs(1);

/// The loop that claims jobs and sends them through the stack.
pub(super) struct Fetcher {
    pub(super) stack: Stack,
    pub(super) registry: Names,
    pub(super) appetite: Appetite,
    pub(super) sources: Vec<Source>,
    pub(super) order: Order,
    pub(super) slots: Slots,
    pub(super) counters: Arc<Counters>,
    pub(super) runs: Tasks,
    pub(super) stop: CancellationToken,
}

/// A queue to claim from.
#[derive(Debug)]
pub(super) struct Source {
    line: Arc<Line>,
    exchange: Asking,
    /// It isn't looked at before then: its last claim failed. Other queues go on.
    paused_until: Option<Instant>,
}

impl Source {
    pub(super) fn new(line: Arc<Line>, exchange: Asking) -> Self {
        Self { line, exchange, paused_until: None }
    }

    fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|until| Instant::now() < until)
    }

    /// `waited`: how long the other queues had to wait for it. They get as much.
    fn failed(&mut self, error: &CallError, waited: Duration) {
        let queue = self.line.store.name();
        // The first of several in a row: there may be two a second for hours.
        if self.paused_until.is_none() {
            tracing::warn!(%error, %queue, "claiming failed; it is tried again every {PAUSE:?}");
        } else {
            tracing::debug!(%error, %queue, "claiming failed again");
        }
        self.paused_until = Some(Instant::now() + PAUSE.max(waited));
        self.line.heat();
    }
}

impl Fetcher {
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let freed = self.slots.freed();
        while !stop.is_cancelled() {
            if self.slots.free() == 0 && !self.rides() {
                stop.run_until_cancelled(freed.notified()).await;
                continue;
            }
            if stop.run_until_cancelled(self.ready()).await.is_none() {
                break;
            }
            match self.next_source() {
                Some(at) => self.claim(at).await,
                None => self.sleep().await,
            }
        }
        self.leave().await;
    }

    /// Whether a claim may be asked for before there is room, to go along with the next completion. Not of one queue among
    /// several: the place belongs to whichever is next in turn.
    fn rides(&self) -> bool {
        self.sources.len() == 1
    }

    async fn ready(&mut self) {
        let Ok(()) = poll_fn(|cx| self.stack.poll_ready(cx)).await;
    }

    async fn is_ready_at_once(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.stack.poll_ready(cx).is_ready())).await
    }

    /// The next queue in order that may have work and has room.
    fn next_source(&self) -> Option<usize> {
        self.order.next(|at| {
            let source = &self.sources[at];
            source.line.is_hot() && (source.line.room() > 0 || self.rides()) && !source.is_paused()
        })
    }

    /// Waits until a slot comes free, a queue may have work, or a pause is over.
    async fn sleep(&self) {
        let has_room = self.slots.free() > 0;
        let resting = |source: &&Source| has_room && source.line.room() > 0 && !source.is_paused();
        self.sources.iter().filter(resting).for_each(|source| source.line.park());
        let pause_over =
            self.sources.iter().filter(|source| source.is_paused()).filter_map(|source| source.paused_until);
        let freed = self.slots.freed();
        let something = async {
            match pause_over.min() {
                Some(over) => tokio::select! {
                    () = freed.notified() => {}
                    () = sleep_until(over) => {}
                },
                None => freed.notified().await,
            }
        };
        self.stop.run_until_cancelled(something).await;
        self.sources.iter().for_each(|source| source.line.unpark());
    }

    async fn claim(&mut self, at: usize) {
        let (freed, rides) = (self.slots.freed(), self.rides());
        let source = &mut self.sources[at];
        source.line.cool();
        let asked = Instant::now();
        let mut answer = source.exchange.claim(self.appetite.jobs(), rides);
        let claimed = loop {
            tokio::select! {
                claimed = &mut answer => break claimed,
                () = freed.notified() => source.exchange.look(),
                () = self.stop.cancelled() => {
                    source.exchange.withdraw();
                    // What it takes all the same is given back.
                    if let Ok(claimed) = timeout(LAST_CLAIM, &mut answer).await {
                        break claimed;
                    }
                    answer.close();
                    // In this very moment; what comes later, the exchange gives back.
                    match answer.try_recv() {
                        Ok(claimed) => break Ok(claimed),
                        Err(_) => return,
                    }
                }
            }
        };
        match claimed {
            Ok(Ok(claimed)) => {
                source.paused_until = None;
                self.order.took(at, claimed.batch.jobs.len());
                self.dispatch(at, claimed).await;
            }
            Ok(Err(error)) => {
                let waited = if rides { Duration::ZERO } else { asked.elapsed() };
                source.failed(&error, waited);
                self.order.took(at, 0);
            }
            Err(_withdrawn) => {}
        }
    }

    async fn dispatch(&mut self, at: usize, claimed: Claimed) {
        let line = Arc::clone(&self.sources[at].line);
        let Claimed { batch, room } = claimed;
        self.counters.claimed(batch.jobs.len(), batch.dropped);
        if batch.dropped > 0 {
            tracing::warn!(queue = %line.store.name(), ids = batch.dropped, "dropped ids that have no job");
        }
        if batch.more {
            line.heat();
        }
        line.expect(batch.next_event);
        // A claim that took long, because it had to be repeated, may bring jobs whose lease is as good as over. They are
        // still ours as far as the server is concerned, and a stall that nobody had must not be counted.
        let (jobs, late): (Vec<_>, Vec<_>) = batch.jobs.into_iter().partition(has_lease);
        if !late.is_empty() {
            self.give_back(&line, late);
        }
        let taken = jobs.len();
        let mut jobs = jobs.into_iter();
        for n in 0..taken {
            // A claim whose answer was lost is answered with what it took then, and there may be less room now.
            let has_room = n < room && !self.stop.is_cancelled();
            // For the first one the stack was made ready before the claim.
            if !has_room || (n > 0 && !self.is_ready_at_once().await) {
                if has_room {
                    self.appetite.was_refused_after(n);
                }
                self.give_back(&line, jobs.collect());
                return;
            }
            if let Some(job) = jobs.next() {
                self.start(&line, job);
            }
        }
        self.appetite.was_sated_by(taken);
    }

    fn start(&mut self, line: &Arc<Line>, mut job: store::Claimed) {
        let queue = line.store.name();
        if job.name.is_none() {
            job.name = self.registry.unnamed(queue).map(str::to_owned);
        }
        let options = self.registry.options(job.name.as_deref().unwrap_or_default());
        let reporter = Reporter::Server(line.store.clone());
        let run = self.stack.call(Delivery::new(queue, job, options).with_reporter(reporter));
        let slot = self.slots.take(line);
        let counters = Arc::clone(&self.counters);
        self.runs.spawn(async move {
            let Ok(ended) = run.await;
            counters.ended(&ended);
            drop(slot);
        });
    }

    /// Gives jobs back that there is no room for: others may have it.
    fn give_back(&self, line: &Arc<Line>, jobs: Vec<store::Claimed>) {
        let line = Arc::clone(line);
        let counters = Arc::clone(&self.counters);
        self.runs.spawn(async move {
            release(&line, &counters, jobs.iter().map(|job| job.lease)).await;
            line.heat();
        });
    }

    async fn leave(self) {
        let Self { sources, counters, .. } = self;
        let left = join_all(sources.into_iter().map(|source| leave(source, &counters)));
        if timeout(LEAVE, left).await.is_err() {
            tracing::debug!("the server wasn't told that the worker left; it forgets by itself");
        }
    }
}

/// Whether there is time enough to begin the job, and to renew its lease.
fn has_lease(job: &store::Claimed) -> bool {
    job.leased_until.saturating_duration_since(Instant::now()) > (job.term / 10).min(Duration::from_secs(1))
}

/// Gives back what a claim took whose answer hasn't come, and says goodbye.
async fn leave(source: Source, counters: &Counters) {
    let Source { line, exchange, .. } = source;
    let Some(mut claimer) = exchange.leave().await else { return };
    if claimer.is_owed() {
        match claimer.claim(1).await {
            Ok(batch) => {
                counters.claimed(batch.jobs.len(), batch.dropped);
                release(&line, counters, batch.jobs.iter().map(|job| job.lease)).await;
            }
            Err(error) => tracing::debug!(%error, "what the last claim took comes back when its leases run out"),
        }
    }
    if let Err(error) = claimer.leave().await {
        tracing::debug!(%error, "the server wasn't told that the worker left; it forgets by itself");
    }
}

pub(super) async fn release(line: &Line, counters: &Counters, leases: impl Iterator<Item = Lease>) {
    let released = leases.map(async |lease| match line.store.release(&lease).await {
        Ok(_) => counters.released(),
        Err(error) => tracing::warn!(%error, id = %lease.id(), "the job comes back when its lease runs out"),
    });
    join_all(released).await;
}
