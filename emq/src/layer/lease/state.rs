use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store::Lease;

/// What is known in this process about one lease: until when it surely lasts, and whether it was lost.
#[derive(Debug)]
pub(crate) struct LeaseState {
    lease: Lease,
    until: Mutex<Instant>,
    lost: CancellationToken,
    settling: AtomicBool,
}

impl LeaseState {
    pub(crate) fn new(lease: Lease, until: Instant) -> Self {
        Self { lease, until: Mutex::new(until), lost: CancellationToken::new(), settling: AtomicBool::new(false) }
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }

    pub(crate) fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn renew(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Cancelled when the lease was lost.
    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// From now on the fence decides whether the job was still ours: a renewal that is refused may only have come after
    /// our own settling.
    pub(crate) fn settling(&self) {
        self.settling.store(true, Ordering::Release);
    }

    /// The server said that the token doesn't hold the job any more.
    pub(super) fn refused(&self) {
        if !self.settling.load(Ordering::Acquire) {
            self.lost.cancel();
        }
    }

    /// The lease has run out unrenewed.
    pub(super) fn ran_out(&self) {
        self.lost.cancel();
    }
}
