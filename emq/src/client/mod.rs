//! What application code uses: connect, and enqueue typed jobs.

mod builder;
mod draft;
mod durable;
mod enqueue;
mod error;
mod many;
mod stores;
mod ticket;

use std::{collections::HashMap, fmt, sync::Arc};

use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, time::Instant};

use self::stores::Stores;
pub use self::{
    builder::ClientBuilder,
    draft::{Draft, IntoDraft},
    enqueue::Enqueue,
    error::{EnqueueError, EnqueueManyError, EventsError},
    many::EnqueueMany,
    ticket::{Admission, Ticket},
};
pub(crate) use self::{draft::TRACEPARENT, enqueue::MAX_MINTS};
use crate::{
    clock::later,
    give_way::give_way,
    job::{Job, JobId, Minted, NameError, QueueName, Returns},
    partition::{Partitioned, Spread},
    queue::{Events, JobResult, Queue, ResultError},
    recurring::Recurring,
    store::{CallError, Confirmers, ConnectError, Connection, Listening, Node, Settings, Store, Subscriber, patiently},
};

/// A connection to the server, from which jobs are enqueued and workers are built.
///
/// It reconnects by itself for as long as it lives. Make one per process.
///
/// # Clone
///
/// A clone is cheap and shares the connection.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use emq::Client;
///
/// let client = Client::connect("redis://127.0.0.1:6379").await?;
/// let ticket = client.enqueue(SendEmailJob { to: "ada@example.org".into() }).await?;
/// println!("enqueued as {}", ticket.id());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Arc<Connection>,
    node: Arc<Node>,
    stores: Stores,
    confirmers: Confirmers,
    max_payload: usize,
    trace_context: Option<TraceContext>,
    subscriber: Mutex<Option<Subscriber>>,
    /// The queues that are divided.
    spreads: HashMap<QueueName, Arc<Spread>>,
}

/// Answers the W3C `traceparent` of the place that enqueues.
type TraceContext = Box<dyn Fn() -> Option<String> + Send + Sync>;

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("connection", &self.inner.connection).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects with the default settings.
    ///
    /// The URL is one of `redis://user:password@host:6379/0`, `rediss://` for TLS (with the feature `tls-rustls` or
    /// `tls-native`), `unix:///path/to.sock`, `redis-cluster://host:6379?node=host2:6379`, and
    /// `redis-sentinel://host:26379?node=host2:26379&sentinelServiceName=name`; `valkey` may stand for `redis`.
    ///
    /// It checks the server's version and the wire's, warns if the server may evict keys, and leases a node number for
    /// the ids it mints. This first connection is tried once; from then on the client reconnects without end.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the URL can't be used, the server can't be reached, takes no more connections, refuses the
    /// user, is busy or loading its data, is too old, or holds keys of another wire version.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what it had opened.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), emq::ConnectError> {
    /// let client = emq::Client::connect("redis://127.0.0.1:6379").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder(url).connect().await
    }

    /// A client with other settings than the default ones.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), emq::ConnectError> {
    /// use std::time::Duration;
    ///
    /// let client = emq::Client::builder("redis://127.0.0.1:6379")
    ///     .command_timeout(Duration::from_secs(2))
    ///     .connect()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(url.into())
    }

    /// Enqueues a job: await it as it is, or say more first.
    ///
    /// # Errors
    ///
    /// Awaited, it answers [`EnqueueError`] if the payload can't be encoded or is too large, the queue's name can't be
    /// one, the id belongs to another job, or the server didn't say that it took the job.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
    /// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
    /// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
    /// use std::time::Duration;
    ///
    /// let job = SendEmailJob { to: "ada@example.org".into() };
    /// let ticket = client.enqueue(job).delay(Duration::from_secs(60)).unique("welcome-ada").await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<J> {
        Enqueue::new(self.clone(), job)
    }

    /// Enqueues many jobs of one type, some hundred in each call of the server, and answers one outcome per job, in
    /// order. Takes jobs, or [`Draft`]s where more is to be said about each.
    ///
    /// # Errors
    ///
    /// Awaited, it answers [`EnqueueManyError`] if any of the jobs wasn't enqueued. It holds the outcome of every job: the
    /// others are in the queue.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
    /// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let jobs = ["ada", "grace"].map(|name| SendEmailJob { to: format!("{name}@example.org") });
    /// let tickets = client.enqueue_many(jobs).await?;
    /// assert_eq!(tickets.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn enqueue_many<D: IntoDraft>(&self, jobs: impl IntoIterator<Item = D>) -> EnqueueMany<D::Job> {
        EnqueueMany::new(self.clone(), jobs.into_iter().map(IntoDraft::into_draft).collect())
    }

    /// A queue's transitions, one by one: to look into it, to repair it, or to write a worker of your own. Of a queue that is
    /// divided this is the first partition alone, but for its `enqueue`; see [`partitioned`](Self::partitioned).
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name can't be a queue's.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let counts = client.queue("mail")?.counts().await?;
    /// println!("{} emails to send", counts.pending);
    /// # Ok(()) }
    /// ```
    pub fn queue(&self, name: impl AsRef<str>) -> Result<Queue, NameError> {
        Ok(self.queue_of(QueueName::new(name)?))
    }

    /// A queue with all its partitions: to look into them, and to pause, limit and empty them together. It needn't be this
    /// client that has divided it; a queue that nobody has is as one with one partition.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name can't be a queue's.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// println!("{} emails to send", client.partitioned("mail")?.counts().await?.pending);
    /// # Ok(()) }
    /// ```
    pub fn partitioned(&self, name: impl AsRef<str>) -> Result<Partitioned, NameError> {
        Ok(Partitioned::new(self.clone(), QueueName::new(name)?))
    }

    /// What became of a job of its type's own queue; of a job of another, see [`Queue::result`].
    ///
    /// # Errors
    ///
    /// As [`Queue::result`].
    ///
    /// # Panics
    ///
    /// If the type of the job names a queue that can't be one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
    /// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
    /// # impl emq::Returns for EnrollJob { type Output = u64; }
    /// # async fn example(client: emq::Client, id: emq::JobId) -> Result<(), emq::ResultError> {
    /// use emq::JobResult;
    ///
    /// match client.result::<EnrollJob>(id).await? {
    ///     JobResult::Done(seat) => println!("seat {seat}"),
    ///     JobResult::Dead { error } => println!("it failed: {error}"),
    ///     JobResult::Unfinished(state) => println!("not yet: {state:?}"),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn result<J>(&self, id: JobId) -> Result<JobResult<J::Output>, ResultError>
    where
        J: Returns<Output: DeserializeOwned>,
    {
        #[expect(clippy::expect_used, reason = "documented; `#[job]` checks the name at compile time")]
        let queue = QueueName::new(J::OPTIONS.queue).expect("the queue of the job's type can't be one");
        match self.spread(&queue) {
            Some(_) => Partitioned::new(self.clone(), queue).result::<J>(id).await,
            None => self.queue_of(queue).result::<J>(id).await,
        }
    }

    /// What becomes of the jobs of a queue, as it happens; as [`Queue::events`].
    ///
    /// # Errors
    ///
    /// [`EventsError`] if the name can't be a queue's, the server can't be reached, or doesn't let this user listen.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut events = client.events("mail").await?;
    /// while let Some(event) = events.next().await {
    ///     println!("{event:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn events(&self, queue: impl AsRef<str>) -> Result<Events, EventsError> {
        let queue = QueueName::new(queue)?;
        match self.spread(&queue) {
            Some(_) => Ok(Partitioned::new(self.clone(), queue).events().await?),
            None => Ok(self.queue_of(queue).events().await?),
        }
    }

    /// The recurring jobs of a queue; see [`Recurring`].
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name can't be a queue's.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct ReportJob {}
    /// # impl emq::Job for ReportJob { const NAME: &'static str = "report"; }
    /// # async fn example(client: emq::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use emq::Schedule;
    ///
    /// let hourly = Schedule::every(Duration::from_secs(3_600));
    /// client.recurring("reports")?.upsert("hourly-report", hourly, ReportJob {}).await?;
    /// # Ok(()) }
    /// ```
    pub fn recurring(&self, queue: impl AsRef<str>) -> Result<Recurring, NameError> {
        Ok(self.queue(queue)?.recurring())
    }

    /// How often the connection was lost and made anew.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// println!("{} reconnects", client.reconnects());
    /// # }
    /// ```
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.inner.connection.reconnects()
    }

    /// Gives the node number back and ends the connection, for all clones. Without it the number stays taken for a
    /// minute, and nothing else is missed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the connection open.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) {
    /// client.close().await;
    /// # }
    /// ```
    pub async fn close(&self) {
        if let Err(error) = self.inner.node.give_back(&self.inner.connection).await {
            tracing::debug!(%error, "the node number will run out by itself");
        }
        self.inner.confirmers.close();
        self.inner.connection.close();
        // After it: whoever opens one meanwhile sees that all is over.
        if let Some(subscriber) = self.inner.subscriber.lock().await.take() {
            subscriber.close();
        }
    }

    pub(crate) fn queue_of(&self, queue: QueueName) -> Queue {
        Queue::new(self.clone(), self.store(queue))
    }

    /// How a queue is divided, if it is.
    pub(crate) fn spread(&self, queue: &QueueName) -> Option<Arc<Spread>> {
        self.inner.spreads.get(queue).cloned()
    }

    pub(crate) fn max_payload(&self) -> usize {
        self.inner.max_payload
    }

    /// Listens to a channel, on the one connection that this client has for that. It is made when it is needed.
    pub(crate) async fn listen(&self, channel: String) -> Result<(Subscriber, Listening), CallError> {
        loop {
            let subscriber = self.subscriber().await?;
            match subscriber.listen(channel.clone()).await {
                // It has just ended for want of listeners.
                Err(CallError::Closed) if !self.inner.connection.is_closed() => give_way().await,
                Err(error) => return Err(error),
                Ok(listening) => return Ok((subscriber, listening)),
            }
        }
    }

    async fn subscriber(&self) -> Result<Subscriber, CallError> {
        let mut kept = self.inner.subscriber.lock().await;
        if let Some(subscriber) = kept.as_ref().filter(|subscriber| !subscriber.is_closed()) {
            return Ok(subscriber.clone());
        }
        let deadline = later(Instant::now(), self.settings().retry_for);
        // On the heap, since it is deep, and rare: the compiler has a limit for the depth of a future.
        let opening = Box::pin(patiently(deadline, || Subscriber::open(self.settings())));
        let subscriber = self.inner.connection.unless_closed(opening).await.ok_or(CallError::Closed)??;
        *kept = Some(subscriber.clone());
        Ok(subscriber)
    }

    pub(crate) fn store(&self, queue: QueueName) -> Store {
        self.inner.stores.of(queue, &self.inner.connection)
    }

    /// The id of a new job.
    pub(crate) fn mint(&self) -> JobId {
        Minted::next(self.node().identity().0).0
    }

    fn traceparent(&self) -> Option<String> {
        self.inner.trace_context.as_ref()?()
    }

    /// What another connection to the same server is made from.
    pub(crate) fn settings(&self) -> Settings {
        self.inner.connection.settings().clone()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.inner.node
    }
}
