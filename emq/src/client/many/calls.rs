//! The calls of an enqueue of many jobs: each is sent when it is full, and the next are filled meanwhile.

use std::{collections::BTreeMap, mem, pin::Pin, sync::Arc, task::Poll};

use futures_util::{
    poll,
    stream::{FuturesUnordered, StreamExt as _},
};

use crate::{
    client::{
        Client, EnqueueError, Ticket,
        durable::Wanted,
        enqueue::{MAX_MINTS, Outcome, read, ticket},
    },
    give_way::give_way,
    job::QueueName,
    partition::Spread,
    queue::Queue,
    store::{CallError, Item, MAX_BATCH},
};

/// How many jobs are in one call: so many that the call itself costs next to nothing beside them, and so few that of a
/// thousand the server admits the first while the last are encoded.
const CALL_JOBS: usize = 250;

/// How many are in the first of several calls, which the server waits for with nothing to do. Those after it are twice as
/// large each: to encode a job takes less than half as long as to admit one.
const FIRST_JOBS: usize = 64;

/// The most bytes of payloads and headers in one call: it holds the server for as long as it takes to copy them.
const MAX_CALL_BYTES: usize = 1024 * 1024;

/// How many calls are under way at once, or as many as a queue has partitions if those are more. Two keep a server busy,
/// unless a client takes long to read what it answers.
const UNDER_WAY: usize = 4;

/// A job on its way: its place among the outcomes, and whether its id was minted for this enqueue.
pub(super) struct Sending {
    pub(super) at: usize,
    pub(super) minted: bool,
    pub(super) item: Item,
}

/// Fills calls with jobs, sends them, and gathers what became of the jobs.
pub(super) struct Calls<'a> {
    client: &'a Client,
    wanted: Option<Wanted>,
    outcomes: Vec<Option<Result<Ticket, EnqueueError>>>,
    /// By the name of a queue; an error is why the number of its partitions can't be told.
    routes: BTreeMap<QueueName, Result<Route, CallError>>,
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Answer> + Send + 'a>>>,
    most_under_way: usize,
    /// How many jobs the next call takes.
    call_jobs: usize,
    /// What has collided with another client's job, and into which queue it goes.
    collided: Vec<(QueueName, Sending)>,
}

/// Where the jobs of a queue go: it has one part, or as many as it has partitions.
struct Route {
    spread: Option<Arc<Spread>>,
    parts: Vec<Part>,
}

/// A part of a queue, and the call to it that is being filled.
struct Part {
    queue: Arc<Queue>,
    call: Call,
}

#[derive(Default)]
struct Call {
    jobs: Vec<Sending>,
    bytes: usize,
}

/// What became of the jobs of a call, each with its place, and which collided.
struct Answer {
    name: QueueName,
    ended: Vec<(usize, Result<Ticket, EnqueueError>)>,
    collided: Vec<Sending>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(client: &'a Client, wanted: Option<Wanted>, jobs: usize) -> Self {
        Self {
            client,
            wanted,
            outcomes: (0..jobs).map(|_| None).collect(),
            routes: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
            most_under_way: UNDER_WAY,
            call_jobs: match jobs {
                // Those who wait until jobs are durable wait once for each call.
                _ if wanted.is_some() => MAX_BATCH,
                ..=CALL_JOBS => CALL_JOBS,
                _ => FIRST_JOBS,
            },
            collided: Vec::new(),
        }
    }

    /// Notes why a job isn't sent.
    pub(super) fn refuse(&mut self, at: usize, error: EnqueueError) {
        self.outcomes[at] = Some(Err(error));
    }

    /// Takes a job, and sends the call that it makes full.
    pub(super) async fn send(&mut self, name: QueueName, mut job: Sending) {
        if !self.routes.contains_key(&name) {
            let route = Route::find(self.client, &name).await;
            let parts = route.as_ref().map_or(0, |route| route.parts.len());
            self.most_under_way = self.most_under_way.max(parts);
            self.routes.insert(name.clone(), route);
        }
        match &self.routes[&name] {
            Ok(route) if route.spread.is_some() => Spread::scope(&mut job.item),
            Ok(_) => {}
            Err(source) => {
                let error = EnqueueError::Call { id: job.item.id, source: source.clone() };
                return self.refuse(job.at, error);
            }
        }
        self.fill(name, job).await;
    }

    /// Sends what is left, and says what became of each job, in order.
    pub(super) async fn finish(mut self) -> Vec<Result<Ticket, EnqueueError>> {
        for mints in 1.. {
            self.flush().await;
            if self.collided.is_empty() || mints == MAX_MINTS {
                break;
            }
            for (name, mut job) in mem::take(&mut self.collided) {
                job.item.id = self.client.mint();
                self.fill(name, job).await;
            }
        }
        for (_, job) in mem::take(&mut self.collided) {
            self.refuse(job.at, EnqueueError::Conflict { id: job.item.id });
        }
        self.outcomes.into_iter().flatten().collect()
    }

    async fn fill(&mut self, name: QueueName, job: Sending) {
        let Some(Ok(route)) = self.routes.get_mut(&name) else { return };
        let place = route.place(&job.item);
        let Part { queue, call } = &mut route.parts[place];
        if let Some(full) = call.push(job, self.call_jobs) {
            let queue = Arc::clone(queue);
            self.dispatch(name, queue, full).await;
        }
    }

    /// Sends all calls, whether full or not, and waits for them.
    async fn flush(&mut self) {
        let mut calls = Vec::new();
        for (name, route) in &mut self.routes {
            let Ok(route) = route else { continue };
            for Part { queue, call } in route.parts.iter_mut().filter(|part| !part.call.jobs.is_empty()) {
                calls.push((name.clone(), Arc::clone(queue), call.take()));
            }
        }
        for (name, queue, jobs) in calls {
            self.dispatch(name, queue, jobs).await;
        }
        while let Some(answer) = self.under_way.next().await {
            self.note(answer);
        }
    }

    /// Sends a call, and is done as soon as there is room for one more.
    async fn dispatch(&mut self, name: QueueName, queue: Arc<Queue>, jobs: Vec<Sending>) {
        if self.wanted.is_none() {
            self.call_jobs = (2 * self.call_jobs).min(CALL_JOBS);
        }
        self.under_way.push(Box::pin(send(self.client, self.wanted, name, queue, jobs)));
        while let Poll::Ready(Some(answer)) = poll!(self.under_way.next()) {
            self.note(answer);
        }
        if self.under_way.len() < self.most_under_way {
            // The task that writes to the server may be the next of this very thread: it is to write this call before more
            // is encoded.
            give_way().await;
        } else if let Some(answer) = self.under_way.next().await {
            self.note(answer);
        }
    }

    fn note(&mut self, answer: Answer) {
        for (at, outcome) in answer.ended {
            self.outcomes[at] = Some(outcome);
        }
        self.collided.extend(answer.collided.into_iter().map(|job| (answer.name.clone(), job)));
    }
}

impl Route {
    async fn find(client: &Client, name: &QueueName) -> Result<Self, CallError> {
        let spread = client.spread(name);
        let stores = match &spread {
            None => vec![client.store(name.clone())],
            Some(spread) => {
                spread.announce().await?;
                spread.partitions().to_vec()
            }
        };
        let part = |store| Part { queue: Arc::new(Queue::new(client.clone(), store)), call: Call::default() };
        Ok(Self { spread, parts: stores.into_iter().map(part).collect() })
    }

    fn place(&self, item: &Item) -> usize {
        self.spread.as_ref().map_or(0, |spread| spread.place(item))
    }
}

impl Call {
    /// Takes a job, and returns the jobs to be sent if the call is full by it, or has no room for it.
    fn push(&mut self, job: Sending, most: usize) -> Option<Vec<Sending>> {
        let size = job.item.payload.len() + job.item.headers.as_ref().map_or(0, String::len);
        let is_too_much = !self.jobs.is_empty() && self.bytes + size > MAX_CALL_BYTES;
        let before = is_too_much.then(|| self.take());
        self.bytes += size;
        self.jobs.push(job);
        before.or_else(|| (self.jobs.len() >= most).then(|| self.take()))
    }

    fn take(&mut self) -> Vec<Sending> {
        self.bytes = 0;
        mem::take(&mut self.jobs)
    }
}

async fn send(
    client: &Client,
    wanted: Option<Wanted>,
    name: QueueName,
    queue: Arc<Queue>,
    jobs: Vec<Sending>,
) -> Answer {
    let (_, nonce) = client.node().identity();
    let (sent, items): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| ((job.at, job.minted), job.item)).unzip();
    let admission = client.admit(queue.store(), wanted, nonce, &items).await;
    let mut answer = Answer { name, ended: Vec::with_capacity(items.len()), collided: Vec::new() };
    for (n, ((at, minted), item)) in sent.into_iter().zip(items).enumerate() {
        let outcome = match &admission {
            Ok((admitted, short)) => match read(&item, minted, nonce, admitted, n) {
                Outcome::Ended(entered) => entered.and_then(|entered| ticket(entered, &queue, short.as_ref())),
                Outcome::Collided => {
                    answer.collided.push(Sending { at, minted, item });
                    continue;
                }
            },
            Err(source) => Err(EnqueueError::Call { id: item.id, source: source.clone() }),
        };
        answer.ended.push((at, outcome));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Minted;

    fn job(at: usize, bytes: usize) -> Sending {
        let item = Item::bare(Minted::next(0).0, vec![b'x'; bytes]);
        Sending { at, minted: true, item }
    }

    /// How many jobs are in each call, if a call takes at most so many.
    fn sizes(jobs: Vec<Sending>, most: usize) -> Vec<usize> {
        let mut call = Call::default();
        let mut sizes: Vec<_> =
            jobs.into_iter().filter_map(|job| call.push(job, most)).map(|full| full.len()).collect();
        sizes.extend(Some(call.take().len()).filter(|left| *left > 0));
        sizes
    }

    #[test]
    fn a_call_takes_so_many_jobs_and_a_mebibyte() {
        assert_eq!(sizes((0..2_500).map(|at| job(at, 10)).collect(), 1_000), [1_000, 1_000, 500]);
        assert_eq!(sizes((0..5).map(|at| job(at, 512 * 1024)).collect(), 250), [2, 2, 1]);
        assert_eq!(sizes(vec![job(0, 9 * 1024 * 1024), job(1, 1)], 250), [1, 1]);
        assert!(sizes(Vec::new(), 250).is_empty());
    }

    #[test]
    fn headers_count_as_payloads_do() {
        let with_headers = |at| {
            let mut job = job(at, 0);
            job.item.headers = Some("x".repeat(512 * 1024));
            job
        };
        assert_eq!(sizes((0..5).map(with_headers).collect(), 250), [2, 2, 1]);
    }

    #[test]
    fn calls_keep_the_order_of_the_jobs() {
        let mut call = Call::default();
        let mut jobs: Vec<_> = (0..1_500).filter_map(|at| call.push(job(at, 10), 250)).flatten().collect();
        jobs.extend(call.take());
        assert!(jobs.iter().map(|job| job.at).eq(0..1_500));
    }
}
