//! Claiming: never more than there is room for, and nothing while the stack isn't ready.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt as _},
};
use pin_project_lite::pin_project;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::{
    Tasks,
    appetite::Appetite,
    claimed::{Claimed, leave, release},
    exchange::{Asking, CALLS},
    line::Line,
    order::Order,
    registry::Names,
    slots::{Slot, Slots},
    standing::{self, Standing},
    stats::Counters,
};
use crate::{
    give_way::give_way,
    inject::Reporter,
    layer::{Delivery, Ended, stack::Stack},
    store::{self, CallError},
};

/// The pause of a queue after a claim that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// How many jobs of a claim begin together at least: the smaller the calls, the more of them the server has to take.
const SMALLEST_PART: usize = 16;

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
    /// For claims that stand while the worker is idle, of an only queue.
    standing: Option<Standing>,
    /// One of those is under way, and so no other.
    stands: bool,
    /// How many claims are under way, by the exchange.
    claims: usize,
    /// There were more jobs than the last claim took.
    has_more: bool,
    /// It isn't looked at before then: its last claim failed. Other queues go on.
    paused_until: Option<Instant>,
}

impl Source {
    pub(super) fn new(line: Arc<Line>, exchange: Asking, standing: Option<Standing>) -> Self {
        Self { line, exchange, standing, stands: false, claims: 0, has_more: false, paused_until: None }
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

/// A claim that is under way.
struct Claim {
    /// Which of the queues.
    at: usize,
    since: Instant,
    answer: oneshot::Receiver<Result<Claimed, CallError>>,
}

/// The end of one: `None` if it was withdrawn.
struct Claiming {
    at: usize,
    took: Duration,
    claimed: Option<Result<Claimed, CallError>>,
}

impl Future for Claim {
    type Output = Claiming;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let claimed = ready!(Pin::new(&mut self.answer).poll(cx)).ok();
        Poll::Ready(Claiming { at: self.at, took: self.since.elapsed(), claimed })
    }
}

impl Fetcher {
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let freed = self.slots.freed();
        let mut claims = FuturesUnordered::new();
        while !stop.is_cancelled() {
            if self.may_claim(claims.len()) {
                if stop.run_until_cancelled(self.ready()).await.is_none() {
                    break;
                }
                if let Some(at) = self.next_source(claims.len()) {
                    claims.push(self.claim(at));
                    continue;
                }
                if claims.is_empty() {
                    match self.stand() {
                        Some(claim) => claims.push(claim),
                        None => self.sleep().await,
                    }
                    continue;
                }
            }
            tokio::select! {
                Some(claiming) = claims.next() => self.claimed(claiming).await,
                () = freed.notified() => self.look(),
                () = stop.cancelled() => {}
            }
        }
        self.finish(claims).await;
        self.leave().await;
    }

    /// Whether there may be another claim beside so many.
    fn may_claim(&self, claims: usize) -> bool {
        match claims {
            0 => self.slots.free() > 0 || self.rides(),
            // Only when it will bring jobs, and the stack will take them.
            CALLS.. => false,
            _ => self.rides() && self.appetite.is_whole() && self.sources[0].has_more,
        }
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
    fn next_source(&self, claims: usize) -> Option<usize> {
        self.order.next(|at| {
            let source = &self.sources[at];
            let may_have_work = source.line.is_hot() || claims > 0;
            may_have_work && (source.line.room(0) > 0 || self.rides()) && !source.is_paused()
        })
    }

    /// A claim that stands until there is work; `None` if there is no room, or what may be claimed is yet to be found out.
    fn stand(&mut self) -> Option<Claim> {
        let source = self.sources.first_mut()?;
        let standing = source.standing.as_ref()?;
        let room = self.slots.room(&source.line, 0).min(self.appetite.jobs()).min(standing::MOST);
        if room == 0 || source.is_paused() {
            return None;
        }
        source.stands = true;
        source.line.park();
        let slots = self.slots.promise(&source.line, room);
        Some(Claim { at: 0, since: Instant::now(), answer: standing.claim(slots) })
    }

    /// Waits until a slot comes free, a queue may have work, or a pause is over.
    async fn sleep(&self) {
        let has_room = self.slots.free() > 0;
        let resting = |source: &&Source| has_room && source.line.room(0) > 0 && !source.is_paused();
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

    fn claim(&mut self, at: usize) -> Claim {
        let source = &mut self.sources[at];
        source.line.cool();
        source.claims += 1;
        Claim { at, since: Instant::now(), answer: source.exchange.claim(self.appetite.jobs(), source.has_more) }
    }

    /// Has those looked at again who waited for room, or for work.
    fn look(&self) {
        self.sources.iter().filter(|source| source.claims > 0).for_each(|source| source.exchange.look());
        for source in self.sources.iter().filter(|source| source.stands && source.line.is_hot()) {
            if let Some(standing) = &source.standing {
                source.line.cool();
                standing.look();
            }
        }
    }

    async fn claimed(&mut self, Claiming { at, took, claimed }: Claiming) {
        let rides = self.rides();
        let source = &mut self.sources[at];
        let stood = std::mem::take(&mut source.stands);
        if stood {
            source.line.unpark();
        } else {
            source.claims -= 1;
        }
        source.has_more = matches!(&claimed, Some(Ok(claimed)) if claimed.batch.more);
        match claimed {
            Some(Ok(claimed)) => {
                source.paused_until = None;
                self.order.took(at, claimed.batch.jobs.len());
                self.dispatch(at, claimed).await;
                if stood {
                    // What has waited for so long begins before the next claim is sent.
                    give_way().await;
                }
                // There is room for others where no job has come.
                self.look();
            }
            Some(Err(error)) => {
                source.failed(&error, if rides { Duration::ZERO } else { took });
                self.order.took(at, 0);
            }
            None => {}
        }
    }

    /// Takes back what was asked for, and gives back what comes all the same.
    async fn finish(&mut self, mut claims: FuturesUnordered<Claim>) {
        for source in self.sources.iter().filter(|source| source.claims > 0) {
            source.exchange.withdraw();
        }
        let last = async {
            while let Some(claiming) = claims.next().await {
                self.claimed(claiming).await;
            }
        };
        if timeout(LAST_CLAIM, last).await.is_ok() {
            return;
        }
        for Claim { at, since, mut answer } in claims {
            answer.close();
            // In this very moment; what comes later, the exchange gives back.
            if let Ok(claimed) = answer.try_recv() {
                self.claimed(Claiming { at, took: since.elapsed(), claimed: Some(claimed) }).await;
            }
        }
    }

    async fn dispatch(&mut self, at: usize, claimed: Claimed) {
        let line = Arc::clone(&self.sources[at].line);
        let Claimed { batch, mut slots } = claimed;
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
        let part = (self.slots.limit() / CALLS).max(SMALLEST_PART);
        for n in 0..taken {
            // Jobs that begin together end together, and their completions go in one call: the server would have nothing to
            // do until it comes. Part by part, it works at one call while the jobs of another run.
            if n > 0 && n % part == 0 {
                give_way().await;
            }
            // A claim whose answer was lost is answered with what it took then, and there may be less room now.
            let has_room = !slots.is_empty() && !self.stop.is_cancelled();
            // It was made ready before the claim, but maybe for the first job of another one.
            if !has_room || !self.is_ready_at_once().await {
                if has_room {
                    self.appetite.was_refused_after(n);
                }
                self.give_back(&line, jobs.collect());
                return;
            }
            if let (Some(job), Some(slot)) = (jobs.next(), slots.take()) {
                self.start(&line, job, slot);
            }
        }
        self.appetite.was_sated_by(taken);
    }

    fn start(&mut self, line: &Line, mut job: store::Claimed, slot: Slot) {
        let queue = line.store.name();
        if job.name.is_none() {
            job.name = self.registry.unnamed(queue).map(str::to_owned);
        }
        let options = self.registry.options(job.name.as_deref().unwrap_or_default());
        let reporter = Reporter::Server(line.store.clone());
        let run = self.stack.call(Delivery::with_reporter(queue, job, options, reporter));
        self.runs.spawn(InHand { run, slot, counters: Arc::clone(&self.counters) });
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
        let left = join_all(sources.into_iter().map(async |Source { line, exchange, .. }| {
            for claimer in exchange.leave().await {
                leave(&line, &counters, claimer).await;
            }
        }));
        if timeout(LEAVE, left).await.is_err() {
            tracing::debug!("the server wasn't told that the worker left; it forgets by itself");
        }
    }
}

pin_project! {
    /// The task of a job: its run, and the slot that it takes until it has ended.
    struct InHand<F> {
        #[pin]
        run: F,
        slot: Slot,
        counters: Arc<Counters>,
    }
}

impl<F: Future<Output = Result<Ended, Infallible>>> Future for InHand<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let Ok(ended) = ready!(this.run.poll(cx));
        this.counters.ended(&ended);
        Poll::Ready(())
    }
}

/// Whether there is time enough to begin the job, and to renew its lease.
fn has_lease(job: &store::Claimed) -> bool {
    job.leased_until.saturating_duration_since(Instant::now()) > (job.term / 10).min(Duration::from_secs(1))
}
