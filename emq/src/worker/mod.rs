//! The worker: claims what it has room for, runs it through the stack, and gives back what it can't finish.

mod appetite;
mod beat;
mod builder;
mod claimed;
mod error;
mod exchange;
mod fetch;
mod line;
mod order;
mod orders;
mod partitions;
mod recurring;
mod registry;
mod shares;
mod shutdown;
mod signal;
mod slots;
mod standing;
mod stats;
mod wait;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{sync::Notify, time::Instant};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::TaskTracker,
};

use self::{
    appetite::Appetite,
    builder::Plan,
    exchange::{Exchange, Settling},
    fetch::{Fetcher, Source},
    line::Line,
    order::Order,
    partitions::Partition,
    recurring::Recurrences,
    shares::Shares,
    slots::Slots,
    standing::Stander,
    stats::Counters,
    wait::Watch,
};
pub use self::{
    builder::{DEFAULT_BEAT, DEFAULT_CONCURRENCY, DEFAULT_GRACE, WorkerBuilder},
    error::{BuildError, BuildProblem, RunError},
    signal::shutdown_signal,
    stats::{Stats, WorkerHandle},
};
use crate::{
    client::Client,
    clock::later,
    latch::Latch,
    layer::{LeaseKeeper, stack},
    store::{ConnectError, Waiter, patiently},
};

/// Runs jobs.
///
/// Made by [`Worker::builder`]; see [`WorkerBuilder`] for its settings.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
/// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
/// # impl<S: Send + Sync + 'static> emq::Handler<S> for PingJob {
/// #     async fn run(self, _: emq::inject::Scope<S>) -> Result<emq::Completion, emq::JobError> {
/// #         Ok(emq::Completion::empty())
/// #     }
/// # }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use emq::{Client, Worker, shutdown_signal};
///
/// let client = Client::connect("redis://127.0.0.1:6379").await?;
/// let stats = Worker::builder(&client)
///     .register::<PingJob>()
///     .concurrency(64)
///     .build()?
///     .run_until(shutdown_signal())
///     .await?;
/// println!("{} jobs completed", stats.completed);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a worker does nothing until `run_until` is awaited"]
pub struct Worker {
    plan: Plan,
    client: Client,
    counters: Arc<Counters>,
    stop: CancellationToken,
}

impl Worker {
    /// A worker that takes its jobs through this client.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client);
    /// # }
    /// ```
    pub fn builder(client: &Client) -> WorkerBuilder {
        WorkerBuilder::new(client.clone())
    }

    fn new(client: Client, plan: Plan) -> Self {
        let counters = Arc::new(Counters::new(client.clone()));
        Self { plan, client, counters, stop: CancellationToken::new() }
    }

    /// To look at the worker and to stop it while it runs.
    ///
    /// ```no_run
    /// # async fn example(worker: emq::Worker) -> Result<(), emq::RunError> {
    /// let handle = worker.handle();
    /// let run = tokio::spawn(worker.run());
    /// println!("{} jobs in hand", handle.stats().in_hand);
    /// handle.shutdown();
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle::new(Arc::clone(&self.counters), self.stop.clone())
    }

    /// Runs jobs until [`WorkerHandle::shutdown`] is called; else as [`run_until`](Self::run_until).
    ///
    /// # Errors
    ///
    /// As [`run_until`](Self::run_until).
    ///
    /// # Panics
    ///
    /// As [`run_until`](Self::run_until).
    ///
    /// # Cancel safety
    ///
    /// As [`run_until`](Self::run_until).
    ///
    /// ```no_run
    /// # async fn example(worker: emq::Worker) -> Result<(), emq::RunError> {
    /// let stats = worker.run().await?;
    /// # Ok(()) }
    /// ```
    pub async fn run(self) -> Result<Stats, RunError> {
        self.run_until(std::future::pending()).await
    }

    /// Runs jobs until `shutdown` is done or [`WorkerHandle::shutdown`] is called, and answers what it has done. Then it
    /// claims no more, waits for what it has in hand for the grace time, gives the rest back, and ends. A server that
    /// doesn't answer adds at most 13 s to the grace time.
    ///
    /// # Errors
    ///
    /// [`RunError`] if its own connections can't be made at the start, within the time for which the client repeats a
    /// call ([`ClientBuilder::retry_for`](crate::ClientBuilder::retry_for)), or a task of its own panics. It reconnects by
    /// itself, for as long as it runs.
    ///
    /// # Panics
    ///
    /// If it isn't awaited in a tokio runtime with its timer and I/O enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops every run in hand, as if the process had been killed: nothing more is written, and the
    /// jobs come back when their leases run out.
    ///
    /// ```no_run
    /// # async fn example(worker: emq::Worker) -> Result<(), emq::RunError> {
    /// worker.run_until(emq::shutdown_signal()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Stats, RunError> {
        let mut shutdown = std::pin::pin!(shutdown);
        let stop = self.stop.clone();
        let counters = Arc::clone(&self.counters);
        let running = tokio::select! {
            biased;
            () = &mut shutdown => return Ok(counters.snapshot()),
            () = stop.cancelled() => return Ok(counters.snapshot()),
            // Boxed, since connecting makes a large future, and this one is the application's to keep.
            running = Box::pin(self.start()) => running?,
        };
        let broken = tokio::select! {
            () = &mut shutdown => false,
            () = stop.cancelled() => false,
            () = running.broken.cancelled() => true,
        };
        stop.cancel();
        let stats = running.drain().await;
        if broken { Err(RunError::Panicked) } else { Ok(stats) }
    }

    /// Makes the connections and starts the tasks.
    async fn start(self) -> Result<Running, ConnectError> {
        let Self { plan, client, counters, stop } = self;
        // The client was connected before.
        let deadline = later(Instant::now(), client.settings().retry_for);
        let keeper = patiently(deadline, || LeaseKeeper::start(&client)).await?;
        counters.count_stuck(keeper.stuck());
        let slots = Slots::new(plan.concurrency, Arc::clone(&counters));
        let shares = plan.queues.iter().map(|queue| (queue.limit, queue.reserved));
        let shares = Arc::new(Shares::new(plan.concurrency, shares));
        let partitions = patiently(deadline, || partitions::find(&client, &plan.queues)).await?;
        let counts: Vec<usize> = (0..plan.queues.len())
            .map(|queue| partitions.iter().filter(|partition| partition.queue == queue).count())
            .collect();
        let watches = watches(&client, deadline, &partitions, &shares, &slots).await?;

        // Every task ends when `abandon` is cancelled, so that none outlives a run that is dropped.
        let abandon = CancellationToken::new();
        let tasks = Tasks { tracker: TaskTracker::new(), abandon: abandon.clone() };
        let runs = Tasks { tracker: TaskTracker::new(), abandon: abandon.clone() };
        let broken = CancellationToken::new();
        // Heard until the end, and not waited for then: also what is in hand in the grace time can be cancelled.
        let orders = Tasks { tracker: TaskTracker::new(), abandon: abandon.clone() };
        let lines: Vec<_> = watches.iter().flat_map(|watch| watch.lines.iter().map(Arc::clone)).collect();
        let mut standing = None;
        for watch in watches {
            counters.watch(Arc::clone(&watch.waiter));
            let longest = standing::longest_wait(plan.lease);
            if let ([line], Some(longest)) = (&lines[..], longest) {
                let (line, claimer) = (Arc::clone(line), line.claimer(&plan.name, plan.lease));
                let (stander, claims) = Stander::new(line, Arc::clone(&counters), watch.waiter, claimer, longest);
                standing = Some(claims);
                tasks.spawn_vital(stander.run(stop.clone()), &broken);
            } else {
                tasks.spawn_vital(watch.run(stop.clone()), &broken);
            }
        }
        for (queue, count) in plan.queues.iter().zip(&counts) {
            let served = u16::try_from(*count).unwrap_or(u16::MAX);
            orders.spawn(partitions::watch(client.clone(), queue.name.clone(), served));
        }
        let mut sources = Vec::with_capacity(lines.len());
        let mut exchanges = HashMap::new();
        for line in lines {
            orders.spawn(orders::hear(client.clone(), line.store.clone(), keeper.clone()));
            let declared = plan.recurring.iter().filter(|(queue, _)| queue == line.store.name());
            let declared = declared.map(|(_, declared)| declared.clone()).collect();
            let is_first = plan.queues.iter().any(|queue| queue.name == *line.store.name());
            let recurrences = is_first.then(|| Recurrences::new(client.clone(), declared));
            tasks.spawn_vital(beat::maintain(Arc::clone(&line), plan.upkeep, recurrences, stop.clone()), &broken);
            let claimers = std::array::from_fn(|_| line.claimer(&plan.name, plan.lease));
            let (exchange, asking) =
                Exchange::new(Arc::clone(&line), slots.clone(), Arc::clone(&counters), claimers, partitions.len() == 1);
            runs.spawn_vital(exchange.run(), &broken);
            exchanges.insert(line.store.name().clone(), (line.store.clone(), asking.clone()));
            sources.push(Source::new(line, asking, standing.take()));
        }

        let give_back = Arc::new(Latch::default());
        let outside = stack::Outside {
            trace: plan.trace,
            keeper: keeper.clone(),
            writer: Arc::new(Settling { client: client.clone(), exchanges }),
            give_back: Arc::clone(&give_back),
        };
        let (mut registry, jobs) = plan.registry.into_services();
        for partition in &partitions {
            registry.divide(&plan.queues[partition.queue].name, partition.store.name());
        }
        let stack = stack::stack(outside, &plan.layers, jobs);
        let fetcher = Fetcher {
            stack,
            registry,
            appetite: Appetite::of_stack(!plan.layers.is_empty()),
            sources,
            order: Order::new(plan.rank, counts.into_iter()),
            slots,
            counters: Arc::clone(&counters),
            runs: runs.clone(),
            stop,
        };
        tasks.spawn_vital(fetcher.run(), &broken);
        Ok(Running {
            tasks,
            runs,
            give_back,
            broken,
            keeper,
            client,
            counters,
            grace: plan.grace,
            _abandon: abandon.drop_guard(),
        })
    }
}

/// Makes the lines of these partitions, and the connections that wait for them: one, or on a Cluster one for each, for a
/// command can't name keys of two slots.
async fn watches(
    client: &Client,
    deadline: Instant,
    partitions: &[Partition],
    shares: &Arc<Shares>,
    slots: &Slots,
) -> Result<Vec<Watch>, ConnectError> {
    let settings = client.settings();
    let at_once = if settings.is_cluster() { 1 } else { partitions.len().max(1) };
    let mut watches = Vec::with_capacity(partitions.len().div_ceil(at_once));
    for partitions in partitions.chunks(at_once) {
        let parking = Arc::new(Notify::new());
        let line = |partition: &Partition| {
            let (store, queue) = (partition.store.clone(), partition.queue);
            Line::new(store, Arc::clone(shares), queue, slots.freed(), Arc::clone(&parking))
        };
        let lines = partitions.iter().map(line).collect();
        let stores: Vec<_> = partitions.iter().map(|partition| &partition.store).collect();
        let waiter = Arc::new(patiently(deadline, || Waiter::open(settings.clone(), &stores)).await?);
        watches.push(Watch { lines, parking, waiter });
    }
    Ok(watches)
}

/// Tasks that end when the run is abandoned.
#[derive(Clone, Debug)]
struct Tasks {
    tracker: TaskTracker,
    abandon: CancellationToken,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(UntilAbandoned { task, abandoned: self.abandon.clone().cancelled_owned() });
    }

    /// Spawns a task that doesn't end before the worker is told to stop, unless it panics: `broken` is cancelled then.
    fn spawn_vital(&self, task: impl Future<Output = ()> + Send + 'static, broken: &CancellationToken) {
        let panicked = broken.clone().drop_guard();
        self.spawn(async move {
            task.await;
            panicked.disarm();
        });
    }

    /// Whether all have ended within `longest`.
    async fn ended_within(&self, longest: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(longest, self.tracker.wait()).await.is_ok()
    }
}

pin_project! {
    /// A task of a worker. Not an async block, which would hold what it awaits twice.
    struct UntilAbandoned<F> {
        #[pin]
        task: F,
        #[pin]
        abandoned: WaitForCancellationFutureOwned,
    }
}

impl<F: Future<Output = ()>> Future for UntilAbandoned<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.task.poll(cx).is_ready() { Poll::Ready(()) } else { this.abandoned.poll(cx) }
    }
}

/// A worker that has been started.
struct Running {
    /// Fetching, waiting, the beat: they end when the worker is told to stop.
    tasks: Tasks,
    /// One per job in hand.
    runs: Tasks,
    give_back: Arc<Latch>,
    /// One of `tasks` has panicked.
    broken: CancellationToken,
    keeper: LeaseKeeper,
    client: Client,
    counters: Arc<Counters>,
    grace: Duration,
    _abandon: tokio_util::sync::DropGuard,
}
