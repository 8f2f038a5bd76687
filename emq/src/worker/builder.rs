use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use super::{
    BuildError, BuildProblem, Worker,
    beat::Upkeep,
    order::{Rank, Turns},
    recurring::Declared,
    registry::Registry,
};
use crate::{
    client::Client,
    job::{Handler, NameError, QueueName},
    layer::{Delivery, JobLayer, TraceLayer, UserLayer},
    queue::{DEFAULT_LEASE, DEFAULT_MAX_STALLED},
    store::Keep,
};

/// How many jobs a worker has in hand at once, unless set: 32.
pub const DEFAULT_CONCURRENCY: usize = 32;

/// How often a worker looks for expired leases and due jobs, unless set: every second.
pub const DEFAULT_BEAT: Duration = Duration::from_secs(1);

/// How long a worker waits for what it has in hand when it is told to stop, unless set: 25 s, which fits into the 30 s
/// that most platforms allow.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(25);

/// A shorter lease would be lost to an ordinary pause of the network or the scheduler.
pub(super) const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// The settings of a [`Worker`] with the state `S`.
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
/// # #[derive(Clone)] struct Db;
/// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use emq::Worker;
/// use tower::timeout::TimeoutLayer;
///
/// let worker = Worker::builder(&client)
///     .state(Db)
///     .register::<PingJob>()
///     .layer(TimeoutLayer::new(Duration::from_secs(5)))
///     .concurrency(64)
///     .lease(Duration::from_secs(60))
///     .build()?;
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct WorkerBuilder<S = ()> {
    state: Arc<S>,
    setup: Setup,
}

/// The settings that don't depend on the type of the state.
struct Setup {
    client: Client,
    registry: Registry,
    layers: Vec<UserLayer>,
    queues: Vec<String>,
    limits: BTreeMap<String, usize>,
    weights: BTreeMap<String, u32>,
    reserved: BTreeMap<String, usize>,
    is_strict: bool,
    name: String,
    concurrency: usize,
    lease: Duration,
    beat: Duration,
    grace: Duration,
    max_stalled: Option<u32>,
    keep: Keep,
    trace: TraceLayer,
}

impl<S> fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("jobs", &self.setup.registry)
            .field("queues", &self.setup.queues)
            .field("concurrency", &self.setup.concurrency)
            .finish_non_exhaustive()
    }
}

/// A worker's settings, checked.
pub(super) struct Plan {
    pub(super) registry: Registry,
    pub(super) layers: Vec<UserLayer>,
    pub(super) queues: Vec<Served>,
    pub(super) rank: Rank,
    pub(super) name: String,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) upkeep: Upkeep,
    /// Each with the queue that it belongs to, which is one of `queues`.
    pub(super) recurring: Vec<(QueueName, Declared)>,
    pub(super) trace: TraceLayer,
}

/// A queue that the worker serves.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) name: QueueName,
    /// How many of its jobs may be in hand.
    pub(super) limit: Option<usize>,
    /// How many slots are for it alone.
    pub(super) reserved: usize,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("jobs", &self.registry)
            .field("queues", &self.queues)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl WorkerBuilder {
    pub(super) fn new(client: Client) -> Self {
        let setup = Setup {
            client,
            registry: Registry::default(),
            layers: Vec::new(),
            queues: Vec::new(),
            limits: BTreeMap::new(),
            weights: BTreeMap::new(),
            reserved: BTreeMap::new(),
            is_strict: false,
            name: format!("worker-{}", std::process::id()),
            concurrency: DEFAULT_CONCURRENCY,
            lease: DEFAULT_LEASE,
            beat: DEFAULT_BEAT,
            grace: DEFAULT_GRACE,
            max_stalled: Some(DEFAULT_MAX_STALLED),
            keep: Keep::default(),
            trace: TraceLayer::new(),
        };
        Self { state: Arc::new(()), setup }
    }

    /// Sets the state that jobs registered from here on take as [`State<_>`](crate::State).
    ///
    /// ```no_run
    /// # #[derive(Clone)] struct Db;
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).state(Db);
    /// # }
    /// ```
    pub fn state<S: Send + Sync + 'static>(self, state: S) -> WorkerBuilder<S> {
        WorkerBuilder { state: Arc::new(state), setup: self.setup }
    }
}

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Runs jobs of the type `J`, and takes them from its queue unless [`queue`](Self::queue) says otherwise.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # impl<S: Send + Sync + 'static> emq::Handler<S> for PingJob {
    /// #     async fn run(self, _: emq::inject::Scope<S>) -> Result<emq::Completion, emq::JobError> {
    /// #         Ok(emq::Completion::empty())
    /// #     }
    /// # }
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).register::<PingJob>();
    /// # }
    /// ```
    pub fn register<J: Handler<S>>(mut self) -> Self {
        self.setup.registry.add::<S, J>(&self.state, &[]);
        self
    }

    /// Runs jobs of the type `J` with a layer around them alone; several make one with
    /// [`ServiceBuilder`](tower::ServiceBuilder) or a tuple.
    ///
    /// A job whose layer isn't ready waits in hand, under its lease, while other jobs go on.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # impl<S: Send + Sync + 'static> emq::Handler<S> for PingJob {
    /// #     async fn run(self, _: emq::inject::Scope<S>) -> Result<emq::Completion, emq::JobError> {
    /// #         Ok(emq::Completion::empty())
    /// #     }
    /// # }
    /// # fn example(client: emq::Client) {
    /// use tower::limit::ConcurrencyLimitLayer;
    ///
    /// let builder = emq::Worker::builder(&client).register_with::<PingJob>(ConcurrencyLimitLayer::new(2));
    /// # }
    /// ```
    pub fn register_with<J: Handler<S>>(mut self, layer: impl JobLayer) -> Self {
        self.setup.registry.add::<S, J>(&self.state, &[UserLayer::new(layer)]);
        self
    }

    /// Puts a Tower layer around all jobs. Of several, the first is the outermost, as in
    /// [`ServiceBuilder`](tower::ServiceBuilder).
    ///
    /// A worker whose layers aren't ready doesn't claim.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// use std::time::Duration;
    /// use tower::{limit::RateLimitLayer, timeout::TimeoutLayer};
    ///
    /// let builder = emq::Worker::builder(&client)
    ///     .layer(RateLimitLayer::new(100, Duration::from_secs(1)))
    ///     .layer(TimeoutLayer::new(Duration::from_secs(5)));
    /// # }
    /// ```
    pub fn layer(mut self, layer: impl JobLayer) -> Self {
        self.setup.layers.push(UserLayer::new(layer));
        self
    }

    /// Takes jobs from this queue, and no longer from those of the registered jobs' types; call it once per queue.
    /// Queues are served in turn, job by job, unless [`queue_weight`](Self::queue_weight) or
    /// [`strict_order`](Self::strict_order) says otherwise.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).queue("north").queue("south");
    /// # }
    /// ```
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.setup.queues.push(name.into());
        self
    }

    /// How many jobs of this queue the worker has in hand at most; only the worker's own limit by default.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).queue("mail").queue("reports").queue_concurrency("reports", 2);
    /// # }
    /// ```
    pub fn queue_concurrency(mut self, name: impl Into<String>, limit: usize) -> Self {
        self.setup.limits.insert(name.into(), limit);
        self
    }

    /// How many jobs of this queue the worker takes for each one of a queue with the weight 1, while both have work; 1 by
    /// default, and 0 counts as 1. A queue that had no work doesn't catch up on what it has missed.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).queue("mail").queue("reports").queue_weight("mail", 3);
    /// # }
    /// ```
    pub fn queue_weight(mut self, name: impl Into<String>, weight: u32) -> Self {
        self.setup.weights.insert(name.into(), weight);
        self
    }

    /// Keeps so many of the worker's slots for this queue alone; none by default. It may take more than these. So a long
    /// job of another queue never keeps it from running.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).queue("alerts").queue("reports").queue_reserve("alerts", 2);
    /// # }
    /// ```
    pub fn queue_reserve(mut self, name: impl Into<String>, slots: usize) -> Self {
        self.setup.reserved.insert(name.into(), slots);
        self
    }

    /// Takes jobs of a queue only while those named before it have none that can be claimed, in the order of
    /// [`queue`](Self::queue), or else of [`register`](Self::register). A queue that always has work starves those behind it,
    /// but for what [`queue_reserve`](Self::queue_reserve) keeps for them.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).queue("urgent").queue("bulk").strict_order();
    /// # }
    /// ```
    pub fn strict_order(mut self) -> Self {
        self.setup.is_strict = true;
        self
    }

    /// How many jobs the worker has in hand at most; 32 by default.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).concurrency(256);
    /// # }
    /// ```
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.setup.concurrency = limit;
        self
    }

    /// The name under which its jobs are held, followed by a random part; `worker-` and the process id by default.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).name("mailer-7");
    /// # }
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.setup.name = name.into();
        self
    }

    /// How long the server waits for a sign of life before it gives a job to another worker; 30 s by default, at least
    /// 100 ms. It is renewed every third of it. A shorter lease recovers sooner from a killed worker, and bears shorter
    /// interruptions of the network.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).lease(std::time::Duration::from_secs(10));
    /// # }
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.setup.lease = lease;
        self
    }

    /// How often the worker looks for expired leases and due jobs, also under full load; every second by default, at
    /// least 10 ms. When it is idle, due jobs are started in time whatever the beat.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).beat(std::time::Duration::from_millis(200));
    /// # }
    /// ```
    pub fn beat(mut self, beat: Duration) -> Self {
        self.setup.beat = beat;
        self
    }

    /// How long the worker waits for what it has in hand when it is told to stop; 25 s by default. The rest is given
    /// back.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).grace(std::time::Duration::from_secs(8));
    /// # }
    /// ```
    pub fn grace(mut self, grace: Duration) -> Self {
        self.setup.grace = grace;
        self
    }

    /// At which stall a job is buried: a job whose worker died under it that often is likely to be the cause. The third
    /// by default; `None` for never.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).max_stalled(5);
    /// # }
    /// ```
    pub fn max_stalled(mut self, stalls: impl Into<Option<u32>>) -> Self {
        self.setup.max_stalled = stalls.into();
        self
    }

    /// How long and how many dead letters of its queues are kept; 90 days and 10 000 by default.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// use emq::Keep;
    ///
    /// let builder = emq::Worker::builder(&client).keep_dead(Keep { count: 1_000, ..Keep::default() });
    /// # }
    /// ```
    pub fn keep_dead(mut self, keep: Keep) -> Self {
        self.setup.keep = keep;
        self
    }

    /// Calls `hook` with the span of each delivery, before the delivery enters it: to join it with the producer's trace.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let builder = emq::Worker::builder(&client).on_span(|span, delivery| {
    ///     let _ = (span, delivery.header("traceparent"));
    /// });
    /// # }
    /// ```
    pub fn on_span(mut self, hook: impl Fn(&tracing::Span, &Delivery) + Send + Sync + 'static) -> Self {
        self.setup.trace = self.setup.trace.on_span(hook);
        self
    }

    /// Checks the settings. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`BuildError`] with every problem: no jobs, two jobs of one name, a job that can't recur as it says, a bad queue
    /// name, a concurrency of zero, a setting for a queue that isn't served, more slots reserved than there are, weights in a strict order, a lease or beat that
    /// is too short, a `max_stalled` of zero.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let error = emq::Worker::builder(&client).concurrency(0).build().unwrap_err();
    /// assert_eq!(error.problems().len(), 2);
    /// # }
    /// ```
    pub fn build(self) -> Result<Worker, BuildError> {
        let mut problems = self.setup.registry.problems();
        if self.setup.registry.is_empty() {
            problems.push(BuildProblem::NoJobs);
        }
        if self.setup.concurrency == 0 {
            problems.push(BuildProblem::NoConcurrency { of: "the worker".into() });
        }
        if self.setup.max_stalled == Some(0) {
            problems.push(BuildProblem::NoStalls);
        }
        for (setting, value, least, text) in [
            ("lease", self.setup.lease, SHORTEST_LEASE, "100 ms"),
            ("beat", self.setup.beat, Duration::from_millis(10), "10 ms"),
        ] {
            if value < least {
                let setting = setting.to_owned();
                problems.push(BuildProblem::TooShort { setting, value: format!("{value:?}"), least: text });
            }
        }
        let queues = self.checked_queues(&mut problems);
        self.check_reserved(&queues, &mut problems);
        if self.setup.is_strict && !self.setup.weights.is_empty() {
            problems.push(BuildProblem::WeightsInStrictOrder);
        }
        if !problems.is_empty() {
            return Err(BuildError::new(problems));
        }
        let upkeep = Upkeep { beat: self.setup.beat, max_stalled: self.setup.max_stalled, keep: self.setup.keep };
        let weights = queues.iter().map(|queue| self.setup.weights.get(queue.name.as_str()).copied().unwrap_or(1));
        let rank = if self.setup.is_strict { Rank::Strict } else { Rank::Shared(Turns::new(weights)) };
        let recurring = served(self.setup.registry.recurring(), &queues);
        let plan = Plan {
            recurring,
            registry: self.setup.registry,
            layers: self.setup.layers,
            queues,
            rank,
            name: self.setup.name,
            concurrency: self.setup.concurrency,
            lease: self.setup.lease,
            grace: self.setup.grace,
            upkeep,
            trace: self.setup.trace,
        };
        Ok(Worker::new(self.setup.client, plan))
    }

    fn checked_queues(&self, problems: &mut Vec<BuildProblem>) -> Vec<Served> {
        let mut names: Vec<String> = match self.setup.queues.as_slice() {
            [] => self.setup.registry.queues().map(str::to_owned).collect(),
            named => named.to_vec(),
        };
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        for (queue, limit) in &self.setup.limits {
            if *limit == 0 {
                problems.push(BuildProblem::NoConcurrency { of: format!("the queue {queue:?}") });
            }
        }
        let set: BTreeSet<&String> =
            self.setup.limits.keys().chain(self.setup.weights.keys()).chain(self.setup.reserved.keys()).collect();
        for queue in set.into_iter().filter(|queue| !names.contains(queue)) {
            problems.push(BuildProblem::UnservedQueue { queue: queue.clone() });
        }
        let mut queues = Vec::with_capacity(names.len());
        for name in names {
            let checked: Result<QueueName, NameError> = QueueName::new(&name);
            match checked {
                Ok(queue) => queues.push(Served {
                    name: queue,
                    limit: self.setup.limits.get(&name).copied(),
                    reserved: self.setup.reserved.get(&name).copied().unwrap_or(0),
                }),
                Err(error) => problems.push(error.into()),
            }
        }
        queues
    }

    fn check_reserved(&self, queues: &[Served], problems: &mut Vec<BuildProblem>) {
        let concurrency = self.setup.concurrency;
        let reserved = queues.iter().fold(0_usize, |sum, queue| sum.saturating_add(queue.reserved));
        let others = queues.iter().filter(|queue| queue.reserved == 0).count();
        if reserved > 0 && reserved.saturating_add(others.min(1)) > concurrency {
            problems.push(BuildProblem::TooManyReserved { reserved, concurrency, others });
        }
        for Served { name, limit, reserved } in queues {
            if let Some(limit) = limit.filter(|limit| limit < reserved) {
                let queue = name.to_string();
                problems.push(BuildProblem::ReservedBeyondLimit { queue, reserved: *reserved, limit });
            }
        }
    }
}

/// The recurring jobs whose queue is served. In a deploy of several kinds of workers, each may register all jobs and serve
/// some of the queues.
fn served(recurring: impl Iterator<Item = (&'static str, Declared)>, queues: &[Served]) -> Vec<(QueueName, Declared)> {
    let mut served = Vec::new();
    for (queue, declared) in recurring {
        match queues.iter().find(|served| served.name.as_str() == queue) {
            Some(of) => served.push((of.name.clone(), declared)),
            None => tracing::info!(job = declared.name, queue, "a recurring job is left to the workers of its queue"),
        }
    }
    served
}
