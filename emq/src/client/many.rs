use std::{collections::BTreeMap, fmt, future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use futures_util::future::join_all;

use super::{
    Client, Draft, EnqueueError, EnqueueManyError, Ticket,
    durable::Wanted,
    enqueue::{MAX_MINTS, Outcome, read, ticket},
};
use crate::{
    job::{Job, QueueName},
    partition::Spread,
    queue::Queue,
    store::{Durability, Item, MAX_BATCH, Store},
};

/// The most bytes of payloads and headers in one call: it holds the server for as long as it takes to copy them.
const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;

/// An enqueue of many jobs that is sent when it is awaited.
///
/// Each call of the server admits its jobs whole: a server that refuses one refuses all of that call. The calls are made
/// one after the other, those of several partitions at the same time; a failed one doesn't stop the next.
///
/// # Cancel safety
///
/// Dropping the future before it is done leaves it unknown how many jobs were enqueued; none is enqueued twice.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, jobs: Vec<SendEmailJob>) -> Result<(), emq::EnqueueManyError> {
/// let tickets = client.enqueue_many(jobs).await?;
/// let duplicates = tickets.iter().filter(|ticket| ticket.is_duplicate()).count();
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent until the enqueue is awaited"]
pub struct EnqueueMany<J> {
    client: Client,
    drafts: Vec<Draft<J>>,
    wanted: Option<Wanted>,
}

impl<J> fmt::Debug for EnqueueMany<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnqueueMany").field("drafts", &self.drafts.len()).finish_non_exhaustive()
    }
}

/// A job on its way: its place among the outcomes, and whether its id was minted for this call.
struct Sending {
    at: usize,
    minted: bool,
    item: Item,
}

/// What became of a job, with its place.
type Sent = (usize, Result<Ticket, EnqueueError>);

impl<J: Job> EnqueueMany<J> {
    pub(super) fn new(client: Client, drafts: Vec<Draft<J>>) -> Self {
        Self { client, drafts, wanted: None }
    }

    /// Answers only when the jobs are beyond the memory of one server: on so many replicas, or, with a
    /// [`Durability`], on disks too. Waits for that for at most `within` per
    /// call of the server, which takes up to 1 000 jobs.
    ///
    /// Replication is asynchronous: without this, a job that was enqueued in the last moment before a failover is lost.
    /// It isn't a proof even so: a failover may choose a replica that isn't one of those which have confirmed. Nor does
    /// it go further than the enqueue: a job that was completed may still be there again, and run again.
    ///
    /// The wait has a connection of its own, of which a client makes up to eight.
    ///
    /// # Errors
    ///
    /// Awaited, the outcome of a job is [`EnqueueError::NotDurable`] if that wasn't confirmed in time. The job *is*
    /// enqueued then, and its ticket is in the error.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client, jobs: Vec<PingJob>) -> Result<(), emq::EnqueueManyError> {
    /// let tickets = client.enqueue_many(jobs).durable(1, std::time::Duration::from_secs(1)).await?;
    /// # Ok(()) }
    /// ```
    pub fn durable(mut self, durability: impl Into<Durability>, within: Duration) -> Self {
        self.wanted = Some(Wanted { durability: durability.into(), within });
        self
    }

    async fn send(self) -> Result<Vec<Ticket<J>>, EnqueueManyError> {
        let Self { client, drafts, wanted } = self;
        let mut outcomes: Vec<Option<Result<Ticket, EnqueueError>>> = Vec::new();
        let mut queues: BTreeMap<QueueName, Vec<Sending>> = BTreeMap::new();
        for (at, draft) in drafts.into_iter().enumerate() {
            let item = draft.queue_name().map_err(EnqueueError::from);
            let item = item.and_then(|queue| Ok((queue, draft.encode(&client, client.mint())?)));
            match item {
                Ok((queue, item)) => {
                    queues.entry(queue).or_default().push(Sending { at, minted: !draft.has_id(), item });
                    outcomes.push(None);
                }
                Err(error) => outcomes.push(Some(Err(error))),
            }
        }
        for (queue, jobs) in queues {
            for (at, outcome) in send_into(&client, queue, wanted, jobs).await {
                outcomes[at] = Some(outcome);
            }
        }
        EnqueueManyError::check(outcomes.into_iter().flatten().collect())
    }
}

/// Sends the jobs of one queue, to whichever of its partitions each belongs.
async fn send_into(client: &Client, queue: QueueName, wanted: Option<Wanted>, mut jobs: Vec<Sending>) -> Vec<Sent> {
    let spread = client.spread(&queue);
    if let Some(spread) = &spread {
        if let Err(source) = spread.announce().await {
            let failed = |id| EnqueueError::Call { id, source: source.clone() };
            return jobs.into_iter().map(|job| (job.at, Err(failed(job.item.id)))).collect();
        }
        jobs.iter_mut().for_each(|job| Spread::scope(&mut job.item));
    }
    let mut sent = Vec::with_capacity(jobs.len());
    // What collided with another client's id is sent once more under a new one.
    for _ in 0..MAX_MINTS {
        let parts = match &spread {
            None => vec![(client.store(queue.clone()), jobs)],
            Some(spread) => parts(spread, jobs),
        };
        let calls = parts.into_iter().map(|(store, jobs)| send_all(client, store, wanted, jobs));
        jobs = Vec::new();
        for (ended, again) in join_all(calls).await {
            sent.extend(ended);
            jobs.extend(again);
        }
        if jobs.is_empty() {
            break;
        }
    }
    sent.extend(jobs.into_iter().map(|job| (job.at, Err(EnqueueError::Conflict { id: job.item.id }))));
    sent
}

/// The jobs of each partition.
fn parts(spread: &Spread, jobs: Vec<Sending>) -> Vec<(Store, Vec<Sending>)> {
    let mut parts: Vec<_> = spread.partitions().iter().map(|store| (store.clone(), Vec::new())).collect();
    for job in jobs {
        parts[spread.place(&job.item)].1.push(job);
    }
    parts.retain(|(_, jobs)| !jobs.is_empty());
    parts
}

/// Sends jobs to one queue, and answers what became of them, and those that have to be sent again.
async fn send_all(
    client: &Client,
    store: Store,
    wanted: Option<Wanted>,
    jobs: Vec<Sending>,
) -> (Vec<Sent>, Vec<Sending>) {
    let queue = Arc::new(Queue::new(client.clone(), store));
    let mut sent = Vec::with_capacity(jobs.len());
    let mut again = Vec::new();
    for call in calls(jobs) {
        let (_, nonce) = client.node().identity();
        let (mut sendings, items): (Vec<_>, Vec<_>) =
            call.into_iter().map(|Sending { at, minted, item }| ((at, minted), item)).unzip();
        let admission = client.admit(queue.store(), wanted, nonce, &items).await;
        for (n, ((at, minted), mut item)) in sendings.drain(..).zip(items).enumerate() {
            let short = admission.as_ref().ok().and_then(|(_, short)| short.as_ref());
            let outcome = match &admission {
                Ok((admitted, _)) => read(&item, minted, nonce, admitted, n),
                Err(error) => {
                    let source = error.clone();
                    Outcome::Ended(Err(EnqueueError::Call { id: item.id, source }))
                }
            };
            match outcome {
                Outcome::Ended(entered) => {
                    sent.push((at, entered.and_then(|entered| ticket(entered, &queue, short))));
                }
                Outcome::Collided => {
                    item.id = client.mint();
                    again.push(Sending { at, minted, item });
                }
            }
        }
    }
    (sent, again)
}

/// Splits jobs into calls of at most [`MAX_BATCH`] jobs and about [`MAX_CALL_BYTES`].
fn calls(jobs: Vec<Sending>) -> Vec<Vec<Sending>> {
    let mut calls = Vec::new();
    let mut call: Vec<Sending> = Vec::new();
    let mut bytes = 0;
    for job in jobs {
        let size = job.item.payload.len() + job.item.headers.as_ref().map_or(0, String::len);
        if !call.is_empty() && (call.len() == MAX_BATCH || bytes + size > MAX_CALL_BYTES) {
            calls.push(std::mem::take(&mut call));
            bytes = 0;
        }
        bytes += size;
        call.push(job);
    }
    if !call.is_empty() {
        calls.push(call);
    }
    calls
}

impl<J: Job> IntoFuture for EnqueueMany<J> {
    type Output = Result<Vec<Ticket<J>>, EnqueueManyError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::Minted, store::Due};

    fn job(at: usize, bytes: usize) -> Sending {
        let item = Item {
            id: Minted::next(0).0,
            due: Due::Now,
            payload: vec![b'x'; bytes].into(),
            unique: None,
            priority: 0,
            group: None,
            expires_in: None,
            name: None,
            max_attempts: None,
            headers: None,
        };
        Sending { at, minted: true, item }
    }

    fn sizes(jobs: Vec<Sending>) -> Vec<usize> {
        calls(jobs).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_call_takes_at_most_a_thousand_jobs_and_four_mebibytes() {
        assert_eq!(sizes((0..2_500).map(|at| job(at, 10)).collect()), [1_000, 1_000, 500]);
        assert_eq!(sizes((0..5).map(|at| job(at, 2 * 1024 * 1024)).collect()), [2, 2, 1]);
        assert_eq!(sizes(vec![job(0, 9 * 1024 * 1024), job(1, 1)]), [1, 1]);
        assert!(sizes(Vec::new()).is_empty());
    }

    #[test]
    fn headers_count_as_payloads_do() {
        let with_headers = |at| {
            let mut job = job(at, 0);
            job.item.headers = Some("x".repeat(2 * 1024 * 1024));
            job
        };
        assert_eq!(sizes((0..5).map(with_headers).collect()), [2, 2, 1]);
    }

    #[test]
    fn calls_keep_the_order_of_the_jobs() {
        let calls = calls((0..1_500).map(|at| job(at, 10)).collect());
        assert!(calls.iter().flatten().map(|job| job.at).eq(0..1_500));
    }
}
