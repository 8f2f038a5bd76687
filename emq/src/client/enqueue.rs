use std::{
    fmt,
    future::IntoFuture,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    Client, Draft, EnqueueError, Ticket,
    durable::{Shortfall, Wanted},
    ticket::Admission,
};
use crate::{
    job::{Job, JobId, Unique},
    partition::Spread,
    queue::Queue,
    store::{Admit, Admitted, Durability, Item},
};

/// How often an id that another client turns out to have minted too is minted anew.
pub(crate) const MAX_MINTS: usize = 8;

/// An enqueue that is sent when it is awaited.
///
/// # Cancel safety
///
/// Dropping the future before it is done leaves it unknown whether the job was enqueued; nothing is enqueued twice. Give
/// the job an [`id`](Self::id) to be able to send it again.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, job: SendEmailJob) -> Result<(), emq::EnqueueError> {
/// let ticket = client.enqueue(job).priority(-1).header("tenant", "north").await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent until the enqueue is awaited"]
pub struct Enqueue<J> {
    client: Client,
    draft: Draft<J>,
    wanted: Option<Wanted>,
}

impl<J> fmt::Debug for Enqueue<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("draft", &self.draft).finish_non_exhaustive()
    }
}

impl<J: Job> Enqueue<J> {
    pub(super) fn new(client: Client, job: J) -> Self {
        Self { client, draft: Draft::of(job), wanted: None }
    }

    /// Runs it after `delay`, counted from when the server takes it; at once by default. Rounded up to whole ms.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).delay(std::time::Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub fn delay(mut self, delay: Duration) -> Self {
        self.draft = self.draft.delay(delay);
        self
    }

    /// Runs it at `time`, by the server's clock; at once if that has passed.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// client.enqueue(PingJob {}).at(UNIX_EPOCH + Duration::from_secs(4_102_444_800)).await?;
    /// # Ok(()) }
    /// ```
    pub fn at(mut self, time: SystemTime) -> Self {
        self.draft = self.draft.at(time);
        self
    }

    /// Gives it this id instead of a new one. An id belongs to one job of its queue: sent again it is a duplicate, while
    /// the job is there and for its retention after it has ended. With another payload it is
    /// [`Conflict`](EnqueueError::Conflict) while the job is there; of a job that has ended the payload isn't kept.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client, id: emq::JobId) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).id(id).await?;
    /// assert!(client.enqueue(PingJob {}).id(id).await?.is_duplicate());
    /// # Ok(()) }
    /// ```
    pub fn id(mut self, id: JobId) -> Self {
        self.draft = self.draft.id(id);
        self
    }

    /// Gives it a deduplication key, instead of the one of its type: while a job of this queue with the same key is
    /// unfinished, another is a duplicate of it. The key is free again when the job has ended or is a dead letter. A
    /// [`Unique`] says otherwise.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// let first = client.enqueue(PingJob {}).unique("invoice-42").await?;
    /// let second = client.enqueue(PingJob {}).unique("invoice-42").await?;
    /// assert_eq!(first.id(), second.id());
    /// # Ok(()) }
    /// ```
    pub fn unique(mut self, unique: impl Into<Unique>) -> Self {
        self.draft = self.draft.unique(unique);
        self
    }

    /// After how many failures it is buried, instead of its type's number; 0 counts as 1.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).max_attempts(1).await?;
    /// # Ok(()) }
    /// ```
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.draft = self.draft.max_attempts(max_attempts);
        self
    }

    /// Its priority, instead of its type's: the lower runs first; 0 by default. Within one priority the older id runs first.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).priority(-10).await?;
    /// # Ok(()) }
    /// ```
    pub fn priority(mut self, priority: i32) -> Self {
        self.draft = self.draft.priority(priority);
        self
    }

    /// Puts it into the lane of this group, such as a tenant: lanes are served in turn, so that none waits for another's
    /// backlog. A name is as that of a queue; by default a job waits in the flat line, which is served as one lane.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).group("tenant-7").await?;
    /// # Ok(()) }
    /// ```
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.draft = self.draft.group(group);
        self
    }

    /// Buries it with the reason `expired` instead of running it, if no run has begun within `wait` of its enqueue, by the
    /// server's clock; never by default. Rounded up to whole ms.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).expires_in(std::time::Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub fn expires_in(mut self, wait: Duration) -> Self {
        self.draft = self.draft.expires_in(wait);
        self
    }

    /// Sends a header along, which the handler reads with [`JobContext::header`](crate::JobContext::header).
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).header("tenant", "north").await?;
    /// # Ok(()) }
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft = self.draft.header(name, value);
        self
    }

    /// Puts it into this queue instead of its type's.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// client.enqueue(PingJob {}).queue("north").await?;
    /// # Ok(()) }
    /// ```
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.draft = self.draft.queue(queue);
        self
    }

    /// Answers only when the job is beyond the memory of one server: on so many replicas, or, with a
    /// [`Durability`], on disks too. Waits for that for at most `within`.
    ///
    /// Replication is asynchronous: without this, a job that was enqueued in the last moment before a failover is lost.
    /// It isn't a proof even so: a failover may choose a replica that isn't one of those which have confirmed. Nor does
    /// it go further than the enqueue: a job that was completed may still be there again, and run again.
    ///
    /// The wait has a connection of its own, of which a client makes up to eight. For many jobs use
    /// [`enqueue_many`](Client::enqueue_many), which waits once for a thousand.
    ///
    /// # Errors
    ///
    /// Awaited, it answers [`EnqueueError::NotDurable`] if that wasn't confirmed in time. The job *is* enqueued then, and
    /// its ticket is in the error.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// use std::time::Duration;
    /// use emq::{Durability, EnqueueError};
    ///
    /// match client.enqueue(PingJob {}).durable(1, Duration::from_secs(1)).await {
    ///     Err(EnqueueError::NotDurable { ticket, replicas, .. }) => {
    ///         println!("{} is enqueued, on {replicas} replicas", ticket.id());
    ///     }
    ///     other => println!("{} is enqueued, on a replica too", other?.id()),
    /// }
    /// client.enqueue(PingJob {}).durable(Durability::synced(1), Duration::from_secs(2)).await?;
    /// # Ok(()) }
    /// ```
    pub fn durable(mut self, durability: impl Into<Durability>, within: Duration) -> Self {
        self.wanted = Some(Wanted { durability: durability.into(), within });
        self
    }

    async fn send(self) -> Result<Ticket<J>, EnqueueError> {
        let Self { client, draft, wanted } = self;
        let name = draft.queue_name()?;
        let minted = !draft.has_id();
        let mut item = draft.encode(&client, client.mint())?;
        let spread = client.spread(&name);
        if let Some(spread) = &spread {
            spread.announce().await.map_err(|source| EnqueueError::Call { id: item.id, source })?;
            Spread::scope(&mut item);
        }
        for _ in 0..MAX_MINTS {
            let store = match &spread {
                None => client.store(name.clone()),
                Some(spread) => spread.partitions()[spread.place(&item)].clone(),
            };
            let (_, nonce) = client.node().identity();
            let admission = client.admit(&store, wanted, nonce, std::slice::from_ref(&item)).await;
            let (admitted, short) = admission.map_err(|source| EnqueueError::Call { id: item.id, source })?;
            match read(&item, minted, nonce, &admitted, 0) {
                Outcome::Ended(entered) => {
                    let queue = Arc::new(Queue::new(client, store));
                    return ticket(entered?, &queue, short.as_ref()).map(Ticket::typed);
                }
                Outcome::Collided => item.id = client.mint(),
            }
        }
        Err(EnqueueError::Conflict { id: item.id })
    }
}

impl<J: Job> IntoFuture for Enqueue<J> {
    type Output = Result<Ticket<J>, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The id of a job as it was sent, and whether that made a new job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    pub(super) id: JobId,
    pub(super) outcome: Admission,
}

/// What an answer means for one job.
pub(super) enum Outcome {
    Ended(Result<Entered, EnqueueError>),
    /// Another client has minted the same id: it has to be minted anew.
    Collided,
}

/// The ticket of a job that is enqueued, or the error if it isn't so as it was to be.
pub(super) fn ticket(entered: Entered, queue: &Arc<Queue>, short: Option<&Shortfall>) -> Result<Ticket, EnqueueError> {
    let ticket = Ticket::new(entered, Arc::clone(queue));
    match short {
        None => Ok(ticket),
        Some(short) => Err(short.of(ticket)),
    }
}

/// Reads the answer to one job. `minted`: its id was minted for this very call, so nobody else can rightly have it.
pub(super) fn read(item: &Item, minted: bool, nonce: Option<&str>, admission: &Admitted, at: usize) -> Outcome {
    let Some(admit) = admission.admits.get(at) else { return Outcome::Collided };
    let is_repeat = minted && admission.repeated;
    let entered = |outcome| Outcome::Ended(Ok(Entered { id: item.id, outcome }));
    match admit {
        Admit::Enqueued => entered(Admission::Enqueued),
        Admit::Parked { behind } => entered(Admission::Parked(*behind)),
        Admit::Replaced { of } => entered(Admission::Replaced(*of)),
        Admit::Duplicate { of, .. } if *of != item.id => entered(Admission::Duplicate(*of)),
        // The first try was carried out, and only its reply was lost. If the job has ended since, its nonce is gone.
        Admit::Duplicate { nonce: theirs, behind, .. }
            if is_repeat && (theirs.is_none() || theirs.as_deref() == nonce) =>
        {
            entered(behind.map_or(Admission::Enqueued, Admission::Parked))
        }
        Admit::Duplicate { .. } | Admit::Conflict { .. } if minted => Outcome::Collided,
        Admit::Duplicate { of, .. } => entered(Admission::Duplicate(*of)),
        Admit::Conflict { with, .. } => Outcome::Ended(Err(EnqueueError::Conflict { id: *with })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Minted;

    fn item(id: JobId) -> Item {
        Item::bare(id, "{}")
    }

    fn duplicate(of: JobId, nonce: Option<&str>, repeated: bool) -> Admitted {
        Admitted { admits: vec![Admit::Duplicate { of, nonce: nonce.map(Into::into), behind: None }], repeated }
    }

    #[test]
    fn an_id_that_another_client_minted_too_is_minted_anew() {
        let id = Minted::next(0).0;
        let read = |nonce, admission| matches!(read(&item(id), true, nonce, &admission, 0), Outcome::Collided);
        assert!(read(None, duplicate(id, None, false)), "a first try can't find its own job");
        assert!(read(Some("a"), duplicate(id, Some("b"), true)), "a repeat finds the job of another client");
        let conflict = Admitted { admits: vec![Admit::Conflict { with: id, nonce: None }], repeated: true };
        assert!(read(None, conflict), "the same id with another payload is another job");
    }

    #[test]
    fn a_repeat_that_finds_its_own_job_is_no_duplicate() {
        let id = Minted::next(0).0;
        for nonce in [None, Some("a")] {
            let outcome = read(&item(id), true, nonce, &duplicate(id, nonce, true), 0);
            let Outcome::Ended(Ok(entered)) = outcome else { panic!("an error") };
            assert_eq!(entered.outcome, Admission::Enqueued);
        }
    }

    #[test]
    fn a_duplicate_by_its_key_names_the_job_that_was_there_first() {
        let (id, first) = (Minted::next(0).0, Minted::next(0).0);
        for (minted, repeated) in [(true, false), (true, true), (false, false)] {
            let outcome = read(&item(id), minted, None, &duplicate(first, None, repeated), 0);
            let Outcome::Ended(Ok(entered)) = outcome else { panic!("an error") };
            assert_eq!(entered.outcome, Admission::Duplicate(first));
        }
    }

    #[test]
    fn an_id_that_the_user_gave_is_a_duplicate_when_it_is_there() {
        let id = Minted::next(0).0;
        for repeated in [false, true] {
            let Outcome::Ended(Ok(entered)) = read(&item(id), false, None, &duplicate(id, None, repeated), 0) else {
                panic!("an error")
            };
            assert_eq!(entered.outcome, Admission::Duplicate(id));
        }
    }
}
