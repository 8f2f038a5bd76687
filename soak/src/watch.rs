//! Looks at intervals how much there is of everything.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{Client, Counts};
use tokio::time::{Instant, interval};

use crate::{
    book::Book,
    jobs::{QUEUE, SCRAP},
    ledger::Ledger,
    memory::{Look, Server, resident},
};

/// With more jobs than that waiting, the producers pause.
const FULL: u64 = 1_000;

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A line is printed for each third look.
const LOOKS_PER_LINE: usize = 3;

/// Whoever looks.
pub(crate) struct Watch {
    begun: Instant,
    next: Instant,
    pub(crate) looks: Vec<Look>,
    client: Client,
    book: Arc<Book>,
    ledger: Ledger,
    port: u16,
}

impl Watch {
    pub(crate) fn new(client: Client, book: Arc<Book>, ledger: Ledger, port: u16) -> Self {
        println!("soak:   time  accepted  unfinished      done      dead      keys    server  worker 0");
        let begun = Instant::now();
        Self { begun, next: begun + LOOK_EVERY, looks: Vec::new(), client, book, ledger, port }
    }

    /// Looks at the oldest worker, if it is time, and prints a line now and then.
    pub(crate) async fn look(&mut self, old_worker: u32) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + LOOK_EVERY;
        let at = self.begun.elapsed();
        if let Ok(runs) = self.ledger.claimed_by(old_worker).await {
            self.looks.push(Look { at, resident: resident(old_worker), runs });
        }
        if self.looks.len().is_multiple_of(LOOKS_PER_LINE) {
            self.print().await;
        }
    }

    pub(crate) async fn print(&self) {
        let counts = counts(&self.client).await.unwrap_or_default();
        let left = left(&self.client).await.unwrap_or(0);
        let Server { used, keys, .. } = Server::ask(self.port).await;
        println!(
            "soak: {:>4} s {:>9} {left:>11} {:>9} {:>9} {keys:>9} {used:>5} KiB {:>5} KiB",
            self.begun.elapsed().as_secs(),
            self.book.jobs().len(),
            counts.completed,
            counts.dead,
            self.looks.last().map_or(0, |look| look.resident),
        );
    }
}

/// Keeps the producers from enqueuing more than is worked off.
pub(crate) async fn throttle(client: Client, book: Arc<Book>) {
    let mut beat = interval(Duration::from_millis(500));
    loop {
        beat.tick().await;
        if let Some(left) = left(&client).await {
            book.full.store(left > FULL, Ordering::Relaxed);
        }
    }
}

/// How many jobs of both queues haven't ended; `None` while the server is away.
pub(crate) async fn left(client: &Client) -> Option<u64> {
    let mut left = 0;
    for queue in [QUEUE, SCRAP] {
        left += client.queue(queue).ok()?.counts().await.ok()?.unfinished();
    }
    Some(left)
}

/// The counts of the queue; `None` while the server is away.
async fn counts(client: &Client) -> Option<Counts> {
    client.queue(QUEUE).ok()?.counts().await.ok()
}
