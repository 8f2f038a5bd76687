use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store::Lease;

/// What is known in this process about one lease: until when it surely lasts, whether it was lost, and whether somebody has
/// cancelled the job.
#[derive(Debug)]
pub(crate) struct LeaseState {
    lease: Lease,
    until: Mutex<Instant>,
    lost: CancellationToken,
    cancelled: CancellationToken,
    overdue: Mutex<Option<Instant>>,
    settling: AtomicBool,
}

impl LeaseState {
    pub(crate) fn new(lease: Lease, until: Instant) -> Self {
        Self {
            lease,
            until: Mutex::new(until),
            lost: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            overdue: Mutex::new(None),
            settling: AtomicBool::new(false),
        }
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }

    pub(crate) fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A renewal until then is on its way. It may be for a shorter term than the lease had, and its answer may be lost:
    /// from now on no more than this is sure.
    pub(super) fn asked(&self, until: Instant) {
        let mut known = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *known = until.min(*known);
    }

    /// The server has said that the lease lasts until then. Answers may come in another order than they were given.
    pub(super) fn renewed(&self, until: Instant) {
        let mut known = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *known = until.max(*known);
    }

    /// Cancelled when the lease was lost.
    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Cancelled when somebody has cancelled the job.
    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// When the run is past its timeout for so long that it can't be dropped: it blocks its thread.
    pub(super) fn overdue(&self) -> Option<Instant> {
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says by when the run has to be over, until the answer is dropped.
    pub(crate) fn due(self: &Arc<Self>, end: Instant) -> Due {
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        Due(Arc::clone(self))
    }

    /// From now on the fence decides whether the job was still ours: a renewal that is refused may only have come after
    /// our own settling, and a settling that is under way when the lease runs out may have been carried out.
    pub(crate) fn settling(&self) {
        self.settling.store(true, Ordering::Release);
    }

    /// The token doesn't hold the job any more: the server has said so, or the lease has run out unrenewed.
    pub(super) fn lose(&self) {
        if !self.settling.load(Ordering::Acquire) {
            self.lost.cancel();
        }
    }
}

/// A run that has to be over at some time.
#[derive(Debug)]
pub(crate) struct Due(Arc<LeaseState>);

impl Drop for Due {
    fn drop(&mut self) {
        *self.0.overdue.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
