use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::Instant;

use crate::{latch::Latch, layer::Delivery, store::Lease};

/// What is known in this process about one lease: until when it surely lasts, whether it was lost, and whether somebody has
/// cancelled the job.
#[derive(Debug)]
pub(crate) struct LeaseState {
    lease: Lease,
    until: Mutex<Instant>,
    lost: Latch,
    cancelled: Latch,
    overdue: Mutex<Option<Instant>>,
    settling: AtomicBool,
}

impl LeaseState {
    pub(crate) fn new(lease: Lease, until: Instant) -> Self {
        Self {
            lease,
            until: Mutex::new(until),
            lost: Latch::default(),
            cancelled: Latch::default(),
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

    /// Closed when the lease was lost.
    pub(super) fn lost(&self) -> &Latch {
        &self.lost
    }

    /// Closed when somebody has cancelled the job.
    pub(crate) fn cancelled(&self) -> &Latch {
        &self.cancelled
    }

    /// When the run is past its timeout for so long that it can't be dropped: it blocks its thread.
    pub(super) fn overdue(&self) -> Option<Instant> {
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_overdue(&self, end: Option<Instant>) {
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// From now on the fence decides whether the job was still ours: a renewal that is refused may only have come after
    /// our own settling, and a settling that is under way when the lease runs out may have been carried out.
    pub(crate) fn settling(&self) {
        self.settling.store(true, Ordering::Release);
    }

    pub(super) fn is_settling(&self) -> bool {
        self.settling.load(Ordering::Acquire)
    }

    /// The token doesn't hold the job any more: the server has said so, or the lease has run out unrenewed.
    pub(super) fn lose(&self) {
        if !self.is_settling() {
            self.lost.close();
        }
    }
}

/// A run that has to be over at some time, until this is dropped.
#[derive(Debug)]
pub(crate) struct Due(Delivery);

impl Due {
    pub(crate) fn at(delivery: &Delivery, end: Instant) -> Self {
        delivery.lease_state().set_overdue(Some(end));
        Self(delivery.clone())
    }

    /// It isn't over in time.
    pub(crate) fn give_up(&self) {
        self.0.give_up();
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        self.0.lease_state().set_overdue(None);
    }
}
