//! The calls of one queue: what is done is completed and new jobs are claimed in as few of them as there can be.
//!
//! What comes up while a call is under way goes into the next one, so that batches form by themselves and are the larger
//! the slower the server is. The next one waits for the one before, unless it is large: then the server has it before it
//! has answered, and doesn't wait for the worker. A claim for which there is no room yet waits for the next completion,
//! and goes along with it: a worker that runs one job at a time needs one round trip for each.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    claimed::{Claimed, hand_out},
    line::Line,
    slots::{Leaving, Promised, Slots},
    stats::Counters,
};
use crate::{
    client::Client,
    give_way::give_way,
    job::QueueName,
    layer::{Delivery, Outcome, Writer, write},
    queue::Claimer,
    store::{CallError, Done, MAX_COMPLETIONS, MOST_PLAIN, Settled, Store},
};

/// The most bytes of results in one call: one with large results doesn't hold up the others for long.
const MAX_RESULTS: usize = 1024 * 1024;

/// How many calls may be under way at once: the one that the server works at, those that it finds when it is done, and those
/// whose answers are on their way into jobs.
pub(super) const CALLS: usize = 4;

/// What the exchange is asked for.
enum Request {
    Complete(Completing),
    Claim(Claiming),
    /// Looks again whether there is room for the claim.
    Look,
    /// Takes the claim back, unless it is under way.
    Withdraw,
    /// Answers the claimers, when no claim is under way any more: the worker leaves the queue.
    Leave(oneshot::Sender<Vec<Claimer>>),
}

struct Completing {
    done: Done,
    answer: oneshot::Sender<Completed>,
}

/// What became of a completion. Until it is dropped, the job counts as one that leaves.
struct Completed {
    settled: Result<Settled, CallError>,
    _leaving: Option<Leaving>,
}

struct Claiming {
    most: usize,
    /// There is likely to be more than a few jobs.
    is_backlog: bool,
    answer: oneshot::Sender<Result<Claimed, CallError>>,
}

/// Asks the exchange of one queue.
#[derive(Clone, Debug)]
pub(super) struct Asking(mpsc::UnboundedSender<Request>);

impl Asking {
    async fn complete(self, done: Done) -> Result<Settled, CallError> {
        let (answer, answered) = oneshot::channel();
        // It ends before its runs only if the worker was dropped or has panicked.
        self.0.send(Request::Complete(Completing { done, answer })).map_err(|_| CallError::Closed)?;
        answered.await.map_or(Err(CallError::Closed), |completed| completed.settled)
    }

    /// Asks for up to `most` jobs, as soon as there is room for one; for a few, unless it `is_backlog` that waits.
    pub(super) fn claim(&self, most: usize, is_backlog: bool) -> oneshot::Receiver<Result<Claimed, CallError>> {
        let (answer, answered) = oneshot::channel();
        // A closed channel drops the sender, which the receiver sees.
        let _ = self.0.send(Request::Claim(Claiming { most, is_backlog, answer }));
        answered
    }

    pub(super) fn look(&self) {
        let _ = self.0.send(Request::Look);
    }

    pub(super) fn withdraw(&self) {
        let _ = self.0.send(Request::Withdraw);
    }

    pub(super) async fn leave(self) -> Vec<Claimer> {
        let (answer, answered) = oneshot::channel();
        // One that is gone has none.
        let _ = self.0.send(Request::Leave(answer));
        answered.await.unwrap_or_default()
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
            Some((store, exchange)) => write(store, delivery, outcome, |done| exchange.clone().complete(done)),
            None => self.client.write(delivery, outcome),
        }
    }
}

/// Makes the calls of one queue.
pub(super) struct Exchange {
    line: Arc<Line>,
    slots: Slots,
    counters: Arc<Counters>,
    /// Whether jobs may be claimed in the places of those that are being completed.
    rides: bool,
    /// How many completions make a call large enough to be sent while another is under way.
    large: usize,
    requests: mpsc::UnboundedReceiver<Request>,
    completing: Vec<Completing>,
    claiming: VecDeque<Claiming>,
    /// One for each call that may be under way, until the worker leaves the queue.
    claimers: Vec<Claimer>,
    leaving: Option<oneshot::Sender<Vec<Claimer>>>,
}

impl Exchange {
    /// `rides`: jobs may be claimed in the places of those that are being completed.
    pub(super) fn new(
        line: Arc<Line>,
        slots: Slots,
        counters: Arc<Counters>,
        claimers: [Claimer; CALLS],
        rides: bool,
    ) -> (Self, Asking) {
        let (sender, requests) = mpsc::unbounded_channel();
        // Half of what each call could carry if all were under way: the smaller the calls, the more of them the server has
        // to take.
        let large = (slots.limit() / (2 * CALLS)).clamp(1, MAX_COMPLETIONS);
        let exchange = Self {
            line,
            slots,
            counters,
            rides,
            large,
            requests,
            completing: Vec::new(),
            claiming: VecDeque::new(),
            claimers: claimers.into(),
            leaving: None,
        };
        (exchange, Asking(sender))
    }

    /// Ends when nobody can ask any more.
    pub(super) async fn run(mut self) {
        let mut calls = FuturesUnordered::new();
        loop {
            while let Ok(request) = self.requests.try_recv() {
                self.take(request);
            }
            while self.is_due(calls.len()) {
                calls.push(self.next_call().make());
            }
            if self.claimers.len() == CALLS
                && let Some(leaving) = self.leaving.take()
            {
                // Nobody waits for it if the worker was dropped.
                let _ = leaving.send(std::mem::take(&mut self.claimers));
            }
            tokio::select! {
                Some(claimer) = calls.next() => self.claimers.extend(claimer),
                request = self.requests.recv() => match request {
                    Some(request) => {
                        self.take(request);
                        // Who is ready now gets the chance to come along.
                        give_way().await;
                    }
                    None if calls.is_empty() => return,
                    None => self.claimers.extend(calls.next().await.flatten()),
                },
            }
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Complete(completing) => self.completing.push(completing),
            Request::Claim(claiming) => self.claiming.push_back(claiming),
            Request::Look => {}
            Request::Withdraw => self.claiming.clear(),
            Request::Leave(answer) => self.leaving = Some(answer),
        }
    }

    /// Whether there is something to call for, when so many calls are under way.
    fn is_due(&mut self, calls: usize) -> bool {
        if calls >= CALLS {
            return false;
        }
        let size = self.completing.len().max(self.room(self.completing.len().min(MAX_COMPLETIONS)));
        size >= if calls == 0 { 1 } else { self.large }
    }

    /// How many jobs to claim along with so many completions; 0 if nobody asks for any.
    fn room(&mut self, completing: usize) -> usize {
        while self.claiming.front().is_some_and(|claiming| claiming.answer.is_closed()) {
            self.claiming.pop_front();
        }
        match self.claiming.front() {
            Some(Claiming { most, is_backlog, .. }) if !self.claimers.is_empty() => {
                // Few jobs are the short form's, which costs the server less; it says if there are more.
                let most = if completing <= MOST_PLAIN && !is_backlog { MOST_PLAIN.min(*most) } else { *most };
                self.slots.room(&self.line, if self.rides { completing } else { 0 }).min(most)
            }
            _ => 0,
        }
    }

    /// The completions for the next call.
    fn next_completions(&mut self) -> Vec<Completing> {
        // Of a run that was dropped: it is as if the worker had died. Looked for once a call, and not at each request.
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

    fn next_call(&mut self) -> Call {
        let completing = self.next_completions();
        let room = self.room(completing.len());
        let claiming = if room > 0 { self.claiming.pop_front() } else { None };
        let claim = claiming.map(|claiming| {
            // The one first that has jobs already which it doesn't know of.
            let owed = self.claimers.iter().position(Claimer::is_owed);
            let claimer = self.claimers.swap_remove(owed.unwrap_or(0));
            Claim { claimer, room, slots: self.slots.promise(&self.line, room), answer: claiming.answer }
        });
        let (jobs, waiting) = completing
            .into_iter()
            .map(|Completing { done, answer }| {
                (done, Waiting { answer, leaving: self.rides.then(|| self.slots.leave()) })
            })
            .unzip();
        Call { line: Arc::clone(&self.line), counters: Arc::clone(&self.counters), jobs, waiting, claim }
    }
}

/// One call, and who waits for its answer.
struct Call {
    line: Arc<Line>,
    counters: Arc<Counters>,
    jobs: Vec<Done>,
    /// One for each of the jobs.
    waiting: Vec<Waiting>,
    claim: Option<Claim>,
}

struct Waiting {
    answer: oneshot::Sender<Completed>,
    leaving: Option<Leaving>,
}

struct Claim {
    claimer: Claimer,
    room: usize,
    slots: Promised,
    answer: oneshot::Sender<Result<Claimed, CallError>>,
}

impl Call {
    /// Makes it, answers all, and gives the claimer back.
    async fn make(self) -> Option<Claimer> {
        let Self { line, counters, jobs, waiting, claim } = self;
        let Some(Claim { mut claimer, room, slots, answer }) = claim else {
            // Whoever wanted something has gone meanwhile.
            if jobs.is_empty() {
                return None;
            }
            match line.store.complete_many(&jobs).await {
                Ok(settled) => answer_all(waiting, settled),
                Err(error) => failed(&line, jobs, waiting, error, false).await,
            }
            return None;
        };
        if jobs.is_empty() {
            let batch = claimer.claim(room).await;
            hand_out(&line, &counters, answer, batch.map(|batch| Claimed { batch, slots })).await;
            return Some(claimer);
        }
        match claimer.exchange(&jobs, room).await {
            Ok((settled, batch)) => {
                answer_all(waiting, settled);
                hand_out(&line, &counters, answer, Ok(Claimed { batch, slots })).await;
            }
            Err(error) => {
                // Whether the claim was to blame, its next try will tell.
                let _ = answer.send(Err(error.clone()));
                failed(&line, jobs, waiting, error, true).await;
            }
        }
        Some(claimer)
    }
}

/// Passes an error on to all, or, if the server has refused the call, finds out by which of its jobs.
async fn failed(line: &Line, jobs: Vec<Done>, waiting: Vec<Waiting>, mut error: CallError, with_claim: bool) {
    let is_its_own = jobs.len() == 1 && !with_claim;
    for (done, waiting) in jobs.into_iter().zip(waiting) {
        let settled =
            if error.is_transient() || is_its_own { Err(error.clone()) } else { line.store.complete(done).await };
        // The server has gone away meanwhile: the others needn't find that out one after the other.
        if let Err(later) = &settled
            && later.is_transient()
        {
            error = later.clone();
        }
        waiting.answered(settled);
    }
}

fn answer_all(waiting: Vec<Waiting>, settled: Vec<Settled>) {
    for (waiting, settled) in waiting.into_iter().zip(settled) {
        waiting.answered(Ok(settled));
    }
}

impl Waiting {
    fn answered(self, settled: Result<Settled, CallError>) {
        // Nobody waits for it if the run was dropped meanwhile.
        let _ = self.answer.send(Completed { settled, _leaving: self.leaving });
    }
}
