use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::shares::Shares;
use crate::{queue::Claimer, store::Store};

/// One queue of a worker: what fetching, waiting and the beat tell each other about it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) store: Store,
    shares: Arc<Shares>,
    /// Which of the shares is this queue's.
    share: usize,
    /// It may have work that can be claimed.
    hot: AtomicBool,
    /// The fetcher has found nothing and sleeps: a marker may be waited for.
    parked: AtomicBool,
    parking: Notify,
    /// When a job falls due or loses its lease next, or a recurring job has its slot, as far as it is known.
    event: Mutex<Option<Instant>>,
    event_moved: Notify,
    fetcher: Arc<Notify>,
}

impl Line {
    pub(super) fn new(store: Store, shares: Arc<Shares>, share: usize, fetcher: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            store,
            shares,
            share,
            // It is looked at first of all.
            hot: AtomicBool::new(true),
            parked: AtomicBool::new(false),
            parking: Notify::new(),
            event: Mutex::new(None),
            event_moved: Notify::new(),
            fetcher,
        })
    }

    pub(super) fn claimer(&self, worker: &str, lease: Duration) -> Claimer {
        Claimer::new(self.store.clone(), worker).lease(lease)
    }

    /// How many more jobs of this queue may be in hand if so many of them leave.
    pub(super) fn room(&self, leave: usize) -> usize {
        self.shares.room(self.share, leave)
    }

    /// So many more jobs of this queue are in hand, or about to be.
    pub(super) fn took(&self, jobs: usize) {
        self.shares.took(self.share, jobs);
    }

    /// And no longer are.
    pub(super) fn let_go(&self, jobs: usize) {
        self.shares.let_go(self.share, jobs);
    }

    pub(super) fn is_hot(&self) -> bool {
        self.hot.load(Ordering::Acquire)
    }

    /// Says that a claim is about to look: what comes to be after this makes it hot again.
    pub(super) fn cool(&self) {
        self.hot.store(false, Ordering::Release);
    }

    /// Says that there may be work, and wakes the fetcher.
    pub(crate) fn heat(&self) {
        self.hot.store(true, Ordering::Release);
        self.fetcher.notify_one();
    }

    pub(super) fn park(&self) {
        self.parked.store(true, Ordering::Release);
        self.parking.notify_one();
    }

    pub(super) fn unpark(&self) {
        self.parked.store(false, Ordering::Release);
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Acquire)
    }

    /// Waits until the fetcher sleeps.
    pub(super) async fn parked(&self) {
        while !self.is_parked() {
            self.parking.notified().await;
        }
    }

    /// Says when a job falls due or loses its lease next.
    pub(crate) fn expect(&self, wait: Option<Duration>) {
        let Some(at) = wait.and_then(|wait| Instant::now().checked_add(wait)) else { return };
        let mut event = self.event.lock().unwrap_or_else(PoisonError::into_inner);
        if event.is_none_or(|known| at < known) {
            *event = Some(at);
            self.event_moved.notify_one();
        }
    }

    /// When something is expected next; from now on nothing is.
    pub(crate) fn take_event(&self) -> Option<Instant> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn event(&self) -> Option<Instant> {
        *self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is expected earlier than it was.
    pub(crate) async fn event_moved(&self) {
        self.event_moved.notified().await;
    }
}
