//! The way out: wait for what is in hand, give the rest back, and end in bounded time.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{Running, stats::Stats};

/// How long the tasks that fetch and wait may take to end.
const TASKS_END: Duration = Duration::from_secs(3);

/// How long it may take to settle or release what is in hand after the grace time.
const GIVE_BACK: Duration = Duration::from_secs(5);

impl Drop for Running {
    fn drop(&mut self) {
        // Also when the run is dropped: a wait that goes on on an open connection would take markers from others.
        self.counters.close_waiters();
    }
}

impl Running {
    /// Ends a worker that was told to stop.
    pub(super) async fn drain(self) -> Stats {
        if !self.tasks.ended_within(TASKS_END).await {
            tracing::warn!("the server doesn't answer; ending without it");
        }
        if !self.runs.ended_within(self.grace).await {
            let in_hand = self.keeper.in_hand().len();
            tracing::warn!(in_hand, "the grace time is over; giving the rest back");
            self.give_back.close();
            if !self.runs.ended_within(GIVE_BACK).await {
                self.release_blocked().await;
            }
        }
        self.counters.snapshot()
    }

    /// Gives back jobs whose function blocks its thread, so that nothing can drop it.
    async fn release_blocked(&self) {
        let release = self.keeper.in_hand().into_iter().map(async |(queue, lease)| {
            let released = self.client.store(queue).release(&lease).await;
            match released {
                Ok(_) => self.counters.released(),
                Err(error) => {
                    tracing::warn!(%error, id = %lease.id(), "the job will come back when its lease runs out");
                }
            }
        });
        if timeout(GIVE_BACK, join_all(release)).await.is_err() {
            tracing::warn!("the server doesn't answer; the jobs in hand come back when their leases run out");
        }
    }
}
