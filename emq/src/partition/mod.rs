//! One logical queue over many: what one core of a server can't carry.

mod all;
mod error;
mod ever;
mod merge;
mod names;
mod one;
mod place;
mod spread;

use std::{fmt, sync::Arc};

use futures_util::future::try_join_all;

pub(crate) use self::spread::Spread;
pub use self::{error::LimitError, spread::MAX_PARTITIONS};
use crate::{
    client::{Client, Enqueue, EnqueueMany, IntoDraft},
    job::{Job, JobId, NameError, QueueName},
    queue::{Lane, Queue},
    recurring::Recurring,
    store::{CallError, Store},
};

/// A queue in partitions: one to those who enqueue and look after it, and many to the server, on as many nodes of a Cluster
/// as there are.
///
/// [`ClientBuilder::partitioned`](crate::ClientBuilder::partitioned) says of a queue that it is divided; what
/// [`Client::enqueue`] puts into it then goes to one of its partitions. This is the hand on all of them, made by
/// [`Client::partitioned`]. It knows those that take new jobs no more, too: the queue itself, which is the first partition,
/// keeps on the server how many it ever had. docs/scaling.md has the rules.
///
/// A partition is a queue like any other: [`find`](Self::find) and [`partitions`](Self::partitions) answer it, for what isn't
/// here.
///
/// # Cancel safety
///
/// Dropping the future of any method leaves it unknown in which partitions it was carried out; doing it again is harmless.
///
/// # Clone
///
/// A clone is cheap and is the same queue.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob {
/// #     const NAME: &'static str = "send_email";
/// #     const OPTIONS: emq::JobOptions = emq::JobOptions::new().queue("mail");
/// # }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use emq::Client;
///
/// let client = Client::builder("redis-cluster://10.0.0.1").partitioned("mail", 16).connect().await?;
/// client.enqueue(SendEmailJob { to: "ada@example.org".into() }).await?;
///
/// let mail = client.partitioned("mail")?;
/// println!("{} emails to send, wherever they wait", mail.counts().await?.pending);
/// mail.pause().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Partitioned {
    client: Client,
    name: QueueName,
    /// If this client says that it is divided.
    spread: Option<Arc<Spread>>,
}

impl fmt::Debug for Partitioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioned").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Partitioned {
    pub(crate) fn new(client: Client, name: QueueName) -> Self {
        let spread = client.spread(&name);
        Self { client, name, spread }
    }

    /// Its name, which is that of its first partition.
    ///
    /// ```no_run
    /// # fn example(mail: emq::Partitioned) {
    /// println!("{}", mail.name());
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    /// All partitions that it ever had, each a queue by itself. The first of them take new jobs, as many as the client says.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// for partition in mail.partitions().await? {
    ///     println!("{:8} in {}", partition.counts().await?.pending, partition.name());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn partitions(&self) -> Result<Vec<Queue>, CallError> {
        let stores = self.client.partitions(&self.name).await?;
        Ok(stores.into_iter().map(|store| self.queue(&store)).collect())
    }

    /// The partition that has a job, or remembers it; `None` if none does. It looks first where the id belongs, and only if
    /// the job isn't there, as one that was enqueued with a group or a deduplication key, into all others at once.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned, id: emq::JobId) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(partition) = mail.find(id).await? {
    ///     partition.update(id).priority(-5).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn find(&self, id: JobId) -> Result<Option<Queue>, CallError> {
        self.look(id, |queue| async move { Ok(queue.state(id).await?.map(|_| queue)) }).await
    }

    /// Enqueues a job into this queue, whatever its type says; as [`Client::enqueue`].
    ///
    /// # Errors
    ///
    /// Awaited, as [`Client::enqueue`].
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::EnqueueError> {
    /// let ticket = mail.enqueue(PingJob {}).await?;
    /// println!("{} is in {}", ticket.id(), ticket.queue().name());
    /// # Ok(()) }
    /// ```
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<J> {
        self.client.enqueue(job).queue(self.name.as_str())
    }

    /// Enqueues many jobs into this queue, whatever their types and drafts say; as [`Client::enqueue_many`]. The calls to
    /// several partitions are made at the same time; the outcomes are in the order of the jobs.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::EnqueueManyError> {
    /// let tickets = mail.enqueue_many((0..10_000).map(|_| PingJob {})).await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue_many<D: IntoDraft>(&self, jobs: impl IntoIterator<Item = D>) -> EnqueueMany<D::Job> {
        let queue = self.name.as_str();
        self.client.enqueue_many(jobs.into_iter().map(|job| job.into_draft().queue(queue)))
    }

    /// Its recurring jobs, which are those of the first partition: their slots fire there, whatever the number of
    /// partitions.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::RecurringError> {
    /// let jobs = mail.recurring().list(0, 100).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn recurring(&self) -> Recurring {
        self.first().recurring()
    }

    /// One lane of it, which is whole in one partition: that to which new jobs of this group go.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name can't be a lane's.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), Box<dyn std::error::Error>> {
    /// mail.lane("tenant-7")?.set_concurrency(2).await?;
    /// # Ok(()) }
    /// ```
    pub fn lane(&self, name: impl AsRef<str>) -> Result<Lane, NameError> {
        let name = name.as_ref();
        match &self.spread {
            Some(spread) => self.queue(spread.of_group(name)).lane(name),
            None => self.first().lane(name),
        }
    }

    fn first(&self) -> Queue {
        self.client.queue_of(self.name.clone())
    }

    fn queue(&self, store: &Store) -> Queue {
        Queue::new(self.client.clone(), store.clone())
    }

    /// Where a job of this id is, if it has nothing else that says so.
    fn likely(&self, id: JobId) -> Queue {
        self.spread.as_ref().map_or_else(|| self.first(), |spread| self.queue(spread.of_id(id)))
    }

    /// What is found of a job: where it is likely to be, or else in the first of all other partitions that has something.
    async fn look<T, F>(&self, id: JobId, look: impl Fn(Queue) -> F) -> Result<Option<T>, CallError>
    where
        F: Future<Output = Result<Option<T>, CallError>>,
    {
        let likely = self.likely(id);
        if let Some(found) = look(likely.clone()).await? {
            return Ok(Some(found));
        }
        let partitions = self.partitions().await?;
        let others = partitions.into_iter().filter(|queue| queue.name() != likely.name());
        let found = try_join_all(others.map(look)).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// The partition that has a job; if none has, the one that would.
    async fn holder(&self, id: JobId) -> Result<Queue, CallError> {
        Ok(self.find(id).await?.unwrap_or_else(|| self.likely(id)))
    }
}
