mod calls;

use std::{fmt, future::IntoFuture, pin::Pin, time::Duration};

use self::calls::{Calls, Sending};
use super::{Client, Draft, EnqueueManyError, Ticket, durable::Wanted};
use crate::{job::Job, store::Durability};

/// An enqueue of many jobs that is sent when it is awaited.
///
/// The jobs go to the server some hundred in one call, and while it admits those the next ones are encoded. Each call
/// admits its jobs whole: a server that refuses one refuses all of that call. A failed call doesn't stop the next.
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
    /// Awaited, the outcome of a job is [`EnqueueError::NotDurable`](crate::EnqueueError::NotDurable) if that wasn't
    /// confirmed in time. The job *is* enqueued then, and its ticket is in the error.
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
        let mut calls = Calls::new(&client, wanted, drafts.len());
        for (at, draft) in drafts.into_iter().enumerate() {
            let item = draft.queue_name().map_err(Into::into);
            let item = item.and_then(|queue| Ok((queue, draft.encode(&client, client.mint())?)));
            match item {
                Ok((queue, item)) => calls.send(queue, Sending { at, minted: !draft.has_id(), item }).await,
                Err(error) => calls.refuse(at, error),
            }
        }
        EnqueueManyError::check(calls.finish().await)
    }
}

impl<J: Job> IntoFuture for EnqueueMany<J> {
    type Output = Result<Vec<Ticket<J>>, EnqueueManyError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
