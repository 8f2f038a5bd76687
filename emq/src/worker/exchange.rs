//! The calls of one queue: what is done is completed and new jobs are claimed in as few of them as there can be.
//!
//! One call is under way at a time. What comes up meanwhile goes into the next one, so that batches form by themselves and
//! are the larger the slower the server is. A claim for which there is no room yet waits for the next completion, and
//! goes along with it: a worker that runs one job at a time needs one round trip for each.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::{
    sync::{mpsc, oneshot},
    task::yield_now,
};

use super::{fetch::release, line::Line, slots::Slots, stats::Counters};
use crate::{
    client::Client,
    job::QueueName,
    layer::{Delivery, Outcome, Writer, write},
    queue::Claimer,
    store::{Batch, CallError, Done, MAX_COMPLETIONS, Settled, Store},
};

/// The most bytes of results in one call: one with large results doesn't hold up the others for long.
const MAX_RESULTS: usize = 1024 * 1024;

/// What the exchange is asked for.
enum Request {
    Complete(Completing),
    Claim(Claiming),
    /// Looks again whether there is room for the claim.
    Look,
    /// Takes the claim back, unless it is under way.
    Withdraw,
    /// Answers the claimer, when no call is under way any more: the worker leaves the queue.
    Leave(oneshot::Sender<Claimer>),
}

struct Completing {
    done: Done,
    answer: oneshot::Sender<Result<Settled, CallError>>,
}

struct Claiming {
    most: usize,
    /// Whether it may take the places of the jobs that are completed with it.
    rides: bool,
    answer: oneshot::Sender<Result<Claimed, CallError>>,
}

/// What a claim brought, and for how many jobs there is room: also in the places of those that were completed with it,
/// which may not say so yet.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) batch: Batch,
    pub(super) room: usize,
}

/// Asks the exchange of one queue.
#[derive(Clone, Debug)]
pub(super) struct Asking(mpsc::UnboundedSender<Request>);

impl Asking {
    async fn complete(self, done: Done) -> Result<Settled, CallError> {
        let (answer, answered) = oneshot::channel();
        // It ends before its runs only if the worker was dropped or has panicked.
        self.0.send(Request::Complete(Completing { done, answer })).map_err(|_| CallError::Closed)?;
        answered.await.unwrap_or(Err(CallError::Closed))
    }

    /// Asks for up to `most` jobs, as soon as there is room for one. `rides`: in the place of one that is completed, too.
    pub(super) fn claim(&self, most: usize, rides: bool) -> oneshot::Receiver<Result<Claimed, CallError>> {
        let (answer, answered) = oneshot::channel();
        // A closed channel drops the sender, which the receiver sees.
        let _ = self.0.send(Request::Claim(Claiming { most, rides, answer }));
        answered
    }

    pub(super) fn look(&self) {
        let _ = self.0.send(Request::Look);
    }

    pub(super) fn withdraw(&self) {
        let _ = self.0.send(Request::Withdraw);
    }

    pub(super) async fn leave(self) -> Option<Claimer> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Request::Leave(answer)).ok()?;
        answered.await.ok()
    }
}

/// Sends completions by the exchange of their queue, and everything else by itself.
pub(super) struct Settling {
    pub(super) client: Client,
    /// Of each queue that is served: its store, for it isn't made anew for each job, and its exchange.
    pub(super) exchanges: HashMap<QueueName, (Store, Asking)>,
}

impl Writer for Settling {
    fn write<'a>(&'a self, delivery: &'a Delivery, outcome: &'a Outcome) -> BoxFuture<'a, Result<Settled, CallError>> {
        match self.exchanges.get(delivery.queue()) {
            Some((store, exchange)) => {
                Box::pin(write(store, delivery, outcome, |done| exchange.clone().complete(done)))
            }
            None => self.client.write(delivery, outcome),
        }
    }
}

/// Makes the calls of one queue.
pub(super) struct Exchange {
    line: Arc<Line>,
    slots: Slots,
    counters: Arc<Counters>,
    /// Until the worker leaves the queue.
    claimer: Option<Claimer>,
    requests: mpsc::UnboundedReceiver<Request>,
    completing: Vec<Completing>,
    claiming: Option<Claiming>,
}

impl Exchange {
    pub(super) fn new(line: Arc<Line>, slots: Slots, counters: Arc<Counters>, claimer: Claimer) -> (Self, Asking) {
        let (sender, requests) = mpsc::unbounded_channel();
        let exchange =
            Self { line, slots, counters, claimer: Some(claimer), requests, completing: Vec::new(), claiming: None };
        (exchange, Asking(sender))
    }

    /// Ends when nobody can ask any more.
    pub(super) async fn run(mut self) {
        loop {
            if self.completing.is_empty() && self.room(0) == 0 {
                let Some(request) = self.requests.recv().await else { return };
                self.take(request);
                // Who is ready now gets the chance to come along.
                yield_now().await;
            }
            while let Ok(request) = self.requests.try_recv() {
                self.take(request);
            }
            self.call().await;
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Complete(completing) => self.completing.push(completing),
            Request::Claim(claiming) => self.claiming = Some(claiming),
            Request::Look => {}
            Request::Withdraw => self.claiming = None,
            Request::Leave(answer) => {
                if let Some(claimer) = self.claimer.take() {
                    // Nobody waits for it if the worker was dropped.
                    let _ = answer.send(claimer);
                }
            }
        }
    }

    /// How many jobs to claim along with these completions; 0 if nobody asks for any.
    fn room(&self, completing: usize) -> usize {
        let Some(Claiming { most, rides, answer }) = &self.claiming else { return 0 };
        if answer.is_closed() {
            return 0;
        }
        let freed = if *rides { completing } else { 0 };
        (self.slots.free() + freed).min(self.line.room().saturating_add(freed)).min(*most)
    }

    /// The completions for the next call.
    fn next_completions(&mut self) -> Vec<Completing> {
        // Of a run that was dropped: it is as if the worker had died.
        self.completing.retain(|completing| !completing.answer.is_closed());
        let mut bytes = 0;
        let fits = self.completing.iter().take(MAX_COMPLETIONS).take_while(|completing| {
            let is_first = bytes == 0;
            bytes += completing.done.result.as_ref().map_or(0, bytes::Bytes::len) + 1;
            is_first || bytes <= MAX_RESULTS
        });
        let count = fits.count();
        self.completing.drain(..count).collect()
    }

    async fn call(&mut self) {
        let completing = self.next_completions();
        let room = self.room(completing.len());
        let claiming = if room > 0 { self.claiming.take() } else { None };
        let jobs: Vec<Done> = completing.iter().map(|completing| completing.done.clone()).collect();
        match (claiming, &mut self.claimer) {
            (Some(claiming), Some(claimer)) if jobs.is_empty() => {
                let batch = claimer.claim(room).await;
                self.hand_out(claiming, batch.map(|batch| Claimed { batch, room })).await;
            }
            (Some(claiming), Some(claimer)) => match claimer.exchange(&jobs, room).await {
                Ok((settled, batch)) => {
                    answer(completing, settled);
                    self.hand_out(claiming, Ok(Claimed { batch, room })).await;
                }
                Err(error) => {
                    // Whether the claim was to blame, its next try will tell.
                    let _ = claiming.answer.send(Err(error.clone()));
                    self.failed(completing, error, true).await;
                }
            },
            _ if jobs.is_empty() => {}
            _ => match self.line.store.complete_many(&jobs).await {
                Ok(settled) => answer(completing, settled),
                Err(error) => self.failed(completing, error, false).await,
            },
        }
    }

    /// Gives a claim its answer, or the jobs back if it isn't waited for any more.
    async fn hand_out(&self, claiming: Claiming, claimed: Result<Claimed, CallError>) {
        let Err(Ok(unwanted)) = claiming.answer.send(claimed) else { return };
        let Batch { jobs, dropped, .. } = unwanted.batch;
        self.counters.claimed(jobs.len(), dropped);
        release(&self.line, &self.counters, jobs.iter().map(|job| job.lease)).await;
    }

    /// Passes an error on to all, or, if the server has refused the call, finds out by which of its jobs.
    async fn failed(&self, completing: Vec<Completing>, mut error: CallError, with_claim: bool) {
        let is_its_own = completing.len() == 1 && !with_claim;
        for Completing { done, answer } in completing {
            let settled = if error.is_transient() || is_its_own {
                Err(error.clone())
            } else {
                self.line.store.complete(done).await
            };
            // The server has gone away meanwhile: the others needn't find that out one after the other.
            if let Err(later) = &settled
                && later.is_transient()
            {
                error = later.clone();
            }
            let _ = answer.send(settled);
        }
    }
}

fn answer(completing: Vec<Completing>, settled: Vec<Settled>) {
    for (Completing { answer, .. }, settled) in completing.into_iter().zip(settled) {
        // Nobody waits for it if the run was dropped meanwhile.
        let _ = answer.send(Ok(settled));
    }
}
