//! Something that happens once.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Something that happens once, and that any number of tasks may wait for. Each job has several which nobody ever waits for:
/// so it costs nothing until somebody does, and holds no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    closed: AtomicBool,
    waiting: Notify,
}

impl Latch {
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.waiting.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // Told of what happens from here on, so that it can't come between the look and the wait.
        let told = self.waiting.notified();
        if !self.is_closed() {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    #[test]
    fn whoever_waits_is_woken_and_whoever_comes_later_doesnt_wait() {
        let latch = Latch::default();
        let mut first = task::spawn(latch.closed());
        let mut unpolled = task::spawn(latch.closed());
        assert_pending!(first.poll());
        assert!(!latch.is_closed());
        latch.close();
        latch.close();
        assert!(first.is_woken() && latch.is_closed());
        assert_ready!(first.poll());
        assert_ready!(unpolled.poll());
        assert_ready!(task::spawn(latch.closed()).poll());
    }
}
