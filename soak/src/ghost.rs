//! A ghost: it writes under tokens that are no longer valid, as a worker would that knows nothing of its lost lease.
//!
//! Workers notice by themselves that a lease is lost, so that hardly a late write of theirs reaches the server. Whether
//! the server would refuse it is seen with this.

use std::{sync::Arc, time::Duration};

use emq::{BoxError, Client, Completion, Extended, JobId, Lease, Queue, Settled};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::sleep;

use crate::{book::Book, jobs::QUEUE, ledger::Ledger, operator::is_passing};

pub(crate) struct Ghost {
    queue: Queue,
    ledger: Ledger,
    book: Arc<Book>,
    chance: StdRng,
}

impl Ghost {
    pub(crate) fn new(client: &Client, ledger: Ledger, book: Arc<Book>, seed: u64) -> Result<Self, BoxError> {
        Ok(Self { queue: client.queue(QUEUE)?, ledger, book, chance: StdRng::seed_from_u64(seed) })
    }

    /// Haunts until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            sleep(Duration::from_millis(self.chance.random_range(50..150))).await;
            // The ledger may be locked for long by a frozen worker.
            for (job, fence) in self.ledger.overtaken().await.unwrap_or_default() {
                if let Ok(id) = job.parse() {
                    self.haunt(id, fence).await;
                }
            }
        }
    }

    /// Tries to write under a token that isn't the newest.
    async fn haunt(&mut self, id: JobId, fence: u64) {
        let (queue, lease) = (&self.queue, Lease::new(id, fence));
        let long = Duration::from_secs(60);
        let (verb, settled) = match self.chance.random_range(0..6) {
            0 => ("complete", queue.complete(&lease, Completion::empty()).await),
            1 => ("retry", queue.retry(&lease, long, "by a ghost").await),
            2 => ("bury", queue.bury(&lease, "by a ghost").await),
            3 => ("snooze", queue.snooze(&lease, long).await),
            4 => ("release", queue.release(&lease).await),
            _ => {
                let extended = queue.extend(&[lease], long).await;
                let accepted = |answers: Vec<Extended>| {
                    if answers.contains(&Extended::Renewed) { Settled::Accepted } else { Settled::Stale }
                };
                ("extend", extended.map(accepted))
            }
        };
        match settled {
            Ok(Settled::Accepted) => {
                self.book.violation_of(id, format!("{verb} of {id} was accepted under the old token {fence}"));
            }
            Ok(_) => Book::count(&self.book.haunted),
            Err(error) if is_passing(&error) => {}
            Err(error) => self.book.violation_of(id, format!("{verb} of {id} failed for good: {error}")),
        }
    }
}
