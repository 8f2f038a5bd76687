//! A claim that stands with the server until there is work.
//!
//! It is sent right behind the wait for the queue's marker, and the server comes to it when that wait ends. So a job that
//! is enqueued while the worker is idle is on its way at once, and not only when the worker has woken and asked for it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    claimed::{Claimed, hand_out, leave},
    line::Line,
    slots::Promised,
    stats::Counters,
};
use crate::{
    queue::Claimer,
    store::{Batch, CallError, MOST_PLAIN, Waiter},
};

/// The most jobs that such a claim takes, as many as its script hands out in its short form. A worker that vanishes without
/// a word, as with its machine, is still handed what comes next: that waits for the end of its lease, and should be little.
pub(super) const MOST: usize = MOST_PLAIN;

/// How long one wait lasts before the queue is looked at without a marker.
const LONGEST_WAIT: Duration = Duration::from_millis(7_500);

/// What the worker knows of a lease begins when the claim is sent, and the server's only when the wait is over: this part
/// of it may pass in between.
const PART_OF_LEASE: u32 = 4;

/// The shortest wait: for shorter leases than its multiple, claims don't stand.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// The pause after a wait that failed.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a claim may take to end when the worker stops, and after what time it is told so once more.
const END: Duration = Duration::from_secs(1);
const INTERRUPT_AGAIN: Duration = Duration::from_millis(100);

/// How long the claims under such a lease wait; `None` if it is too short.
pub(super) fn longest_wait(lease: Duration) -> Option<Duration> {
    let part = lease / PART_OF_LEASE;
    (part >= SHORTEST_WAIT).then(|| part.min(LONGEST_WAIT))
}

/// Asks for claims that stand.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    requests: mpsc::UnboundedSender<Request>,
    looking: Arc<Notify>,
}

#[derive(Debug)]
struct Request {
    slots: Promised,
    answer: oneshot::Sender<Result<Claimed, CallError>>,
}

impl Standing {
    /// Asks for as many jobs as there are slots, as soon as there is one.
    pub(super) fn claim(&self, slots: Promised) -> oneshot::Receiver<Result<Claimed, CallError>> {
        let (answer, answered) = oneshot::channel();
        // A closed channel drops the sender, which the receiver sees.
        let _ = self.requests.send(Request { slots, answer });
        answered
    }

    /// Has the claim look now: there may be work that no marker tells of.
    pub(super) fn look(&self) {
        self.looking.notify_one();
    }
}

/// Makes the claims of one queue that stand.
pub(super) struct Stander {
    line: Arc<Line>,
    counters: Arc<Counters>,
    waiter: Arc<Waiter>,
    claimer: Claimer,
    /// The server has the script: the first claim doesn't stand, and sees to that.
    is_known: bool,
    longest: Duration,
    requests: mpsc::UnboundedReceiver<Request>,
    looking: Arc<Notify>,
}

impl Stander {
    pub(super) fn new(
        line: Arc<Line>,
        counters: Arc<Counters>,
        waiter: Arc<Waiter>,
        claimer: Claimer,
        longest: Duration,
    ) -> (Self, Standing) {
        let (sender, requests) = mpsc::unbounded_channel();
        let looking = Arc::new(Notify::new());
        let asking = Standing { requests: sender, looking: Arc::clone(&looking) };
        (Self { line, counters, waiter, claimer, is_known: false, longest, requests, looking }, asking)
    }

    /// Answers each claim, until the worker stops.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while let Some(Some(Request { slots, answer })) = stop.run_until_cancelled(self.requests.recv()).await {
            let Some(batch) = self.claim(slots.count(), &stop).await else { break };
            let claimed = batch.map(|batch| Claimed { batch, slots });
            hand_out(&self.line, &self.counters, answer, claimed).await;
        }
        let Self { line, counters, waiter, claimer, .. } = self;
        // First of all: what the server came to after the goodbye would be claimed for nobody.
        waiter.close();
        leave(&line, &counters, claimer).await;
    }

    /// `None` if the worker has stopped and the server doesn't answer.
    async fn claim(&mut self, most: usize, stop: &CancellationToken) -> Option<Result<Batch, CallError>> {
        // If the last answer was lost, the server may have jobs for this worker already.
        if self.is_known && !self.claimer.is_owed() {
            match self.wait(most, stop).await? {
                Ok(batch) => return Some(Ok(batch)),
                Err(error) => {
                    tracing::debug!(%error, queue = %self.line.store.name(), "waiting for work failed");
                    // A server that doesn't know the script yet learns it from the claim below.
                    if !error.is_code("NOSCRIPT") {
                        stop.run_until_cancelled(sleep(PAUSE)).await?;
                    }
                }
            }
        }
        self.is_known = true;
        let claimed = self.claimer.claim(most);
        let stopped = async {
            stop.cancelled().await;
            sleep(END).await;
        };
        tokio::select! {
            claimed = claimed => Some(claimed),
            () = stopped => None,
        }
    }

    async fn wait(&mut self, most: usize, stop: &CancellationToken) -> Option<Result<Batch, CallError>> {
        let mut waiting = Box::pin(self.claimer.claim_when_woken(&self.waiter, most, self.longest));
        loop {
            tokio::select! {
                batch = &mut waiting => return Some(batch),
                () = self.looking.notified() => self.waiter.interrupt().await,
                () = stop.cancelled() => break,
            }
        }
        // What a claim took that is merely dropped would be held until its lease runs out.
        let interrupted = async {
            loop {
                // The wait may only be on its way there.
                self.waiter.interrupt().await;
                if let Ok(batch) = timeout(INTERRUPT_AGAIN, &mut waiting).await {
                    return batch;
                }
            }
        };
        timeout(END, interrupted).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_stands_spends_a_quarter_of_its_lease_at_most() {
        let cases =
            [(30_000, Some(7_500)), (20_000, Some(5_000)), (10_000, Some(2_500)), (4_000, Some(1_000)), (3_999, None)];
        for (lease, wait) in cases {
            assert_eq!(longest_wait(Duration::from_millis(lease)), wait.map(Duration::from_millis), "{lease}");
        }
        assert_eq!(longest_wait(Duration::MAX), Some(LONGEST_WAIT));
    }
}
