use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    layer::{Ended, Outcome, Stuck},
    store::{Settled, Waiter},
};

/// What a worker has done so far.
///
/// # Examples
///
/// ```no_run
/// # fn example(handle: emq::WorkerHandle) {
/// let stats = handle.stats();
/// println!("{} in hand, {} completed, {} failed", stats.in_hand, stats.completed, stats.failed());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// How many jobs run now, or wait for a layer.
    pub in_hand: u64,
    /// How many of these block their threads past their timeout: their jobs have been failed, and their places are taken
    /// until the functions return.
    pub stuck: u64,
    /// How many were claimed.
    pub claimed: u64,
    /// How many were done.
    pub completed: u64,
    /// How many failed and are to run again.
    pub retried: u64,
    /// How many failed for good.
    pub dead: u64,
    /// How many asked to run later.
    pub snoozed: u64,
    /// How many met a limit elsewhere and went back, to wait for its end.
    pub rate_limited: u64,
    /// How many had nothing to do any more.
    pub discarded: u64,
    /// How many were given back.
    pub released: u64,
    /// How many were dropped because somebody had cancelled them.
    pub cancelled: u64,
    /// How many were dropped because their lease was lost while they ran.
    pub lost: u64,
    /// How many had become another worker's by the time they were to be settled; nothing was written for them.
    pub stale: u64,
    /// How many couldn't be settled because the server was away for longer than the lease.
    pub unsettled: u64,
    /// How many ids without a job were found in the queue and dropped.
    pub dropped: u64,
    /// How often a connection was lost and made anew: the client's, and those that wait for work. The connection that
    /// renews leases isn't counted.
    pub reconnects: u64,
}

impl Stats {
    /// How many runs ended in an error.
    ///
    /// ```
    /// assert_eq!(emq::Stats::default().failed(), 0);
    /// ```
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.retried + self.dead
    }
}

/// A handle of a running worker: to look at it and to stop it.
///
/// # Clone
///
/// A clone is cheap and stands for the same worker.
///
/// # Examples
///
/// ```no_run
/// # async fn example(worker: emq::Worker) {
/// let handle = worker.handle();
/// let run = tokio::spawn(worker.run());
/// handle.shutdown();
/// run.await.unwrap().unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WorkerHandle {
    counters: Arc<Counters>,
    stop: CancellationToken,
}

impl WorkerHandle {
    pub(super) fn new(counters: Arc<Counters>, stop: CancellationToken) -> Self {
        Self { counters, stop }
    }

    /// What the worker has done so far.
    ///
    /// ```no_run
    /// # fn example(handle: emq::WorkerHandle) {
    /// println!("{:?}", handle.stats());
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.counters.snapshot()
    }

    /// Tells the worker to stop: it ends as [`run_until`](crate::Worker::run_until) says.
    ///
    /// ```no_run
    /// # fn example(handle: emq::WorkerHandle) {
    /// handle.shutdown();
    /// # }
    /// ```
    pub fn shutdown(&self) {
        self.stop.cancel();
    }
}

/// The live counters behind [`Stats`].
pub(super) struct Counters {
    client: Client,
    reconnects_before: u64,
    waiters: Mutex<Vec<Arc<Waiter>>>,
    stuck: OnceLock<Stuck>,
    reconnects_of_closed: AtomicU64,
    in_hand: AtomicUsize,
    claimed: AtomicU64,
    completed: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    snoozed: AtomicU64,
    rate_limited: AtomicU64,
    discarded: AtomicU64,
    released: AtomicU64,
    cancelled: AtomicU64,
    lost: AtomicU64,
    stale: AtomicU64,
    unsettled: AtomicU64,
    dropped: AtomicU64,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl Counters {
    pub(super) fn new(client: Client) -> Self {
        Self {
            reconnects_before: client.reconnects(),
            client,
            waiters: Mutex::default(),
            stuck: OnceLock::new(),
            reconnects_of_closed: AtomicU64::new(0),
            in_hand: AtomicUsize::new(0),
            claimed: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            dead: AtomicU64::new(0),
            snoozed: AtomicU64::new(0),
            rate_limited: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            released: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            unsettled: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    pub(super) fn watch(&self, waiter: Arc<Waiter>) {
        self.waiters().push(waiter);
    }

    /// From now on it is known how many runs are stuck.
    pub(super) fn count_stuck(&self, stuck: Stuck) {
        let _ = self.stuck.set(stuck);
    }

    /// Closes the connections that waited. A handle may outlive them, and is to know their number still.
    pub(super) fn close_waiters(&self) {
        for waiter in self.waiters().drain(..) {
            waiter.close();
            self.reconnects_of_closed.fetch_add(waiter.reconnects(), Ordering::Relaxed);
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Arc<Waiter>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn in_hand(&self) -> usize {
        self.in_hand.load(Ordering::Relaxed)
    }

    pub(super) fn took(&self) {
        self.in_hand.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn let_go(&self) {
        self.in_hand.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn claimed(&self, jobs: usize, dropped: u64) {
        self.claimed.fetch_add(jobs as u64, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, ended: &Ended) {
        let counter = match ended {
            Ended::Settled { outcome, settled: Settled::Accepted | Settled::Repeated } => match outcome {
                Outcome::Done(_) => &self.completed,
                Outcome::Retry { .. } => &self.retried,
                Outcome::Dead { .. } => &self.dead,
                Outcome::Snooze { .. } => &self.snoozed,
                Outcome::Hold { .. } => &self.rate_limited,
                Outcome::Discard { .. } => &self.discarded,
                Outcome::Release => &self.released,
                Outcome::Cancelled => &self.cancelled,
            },
            Ended::Settled { settled: Settled::Cancelled, .. } => &self.cancelled,
            Ended::Settled { .. } => &self.stale,
            Ended::Unsettled { .. } => &self.unsettled,
            Ended::Lost => &self.lost,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn released(&self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waiting: u64 = self.waiters().iter().map(|waiter| waiter.reconnects()).sum();
        Stats {
            in_hand: self.in_hand() as u64,
            stuck: self.stuck.get().map_or(0, Stuck::count) as u64,
            claimed: read(&self.claimed),
            completed: read(&self.completed),
            retried: read(&self.retried),
            dead: read(&self.dead),
            snoozed: read(&self.snoozed),
            rate_limited: read(&self.rate_limited),
            discarded: read(&self.discarded),
            released: read(&self.released),
            cancelled: read(&self.cancelled),
            lost: read(&self.lost),
            stale: read(&self.stale),
            unsettled: read(&self.unsettled),
            dropped: read(&self.dropped),
            reconnects: self.client.reconnects() - self.reconnects_before + waiting + read(&self.reconnects_of_closed),
        }
    }
}
