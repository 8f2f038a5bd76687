use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::{Client, Inner, TraceContext, stores::Stores};
use crate::{
    job::NameError,
    partition::Spread,
    store::{Confirmers, ConnectError, Connection, NODE_TTL, Node, Settings},
};

/// The largest payload with its headers, unless set: 1 MiB.
const DEFAULT_MAX_PAYLOAD: usize = 1024 * 1024;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer ones only overflow somewhere below.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const DEFAULT_RETRY_FOR: Duration = Duration::from_secs(10);

/// The settings of a [`Client`].
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), emq::ConnectError> {
/// use std::time::Duration;
/// use emq::Client;
///
/// let client = Client::builder("redis://127.0.0.1:6379")
///     .credentials("emq", "secret")
///     .connect_timeout(Duration::from_secs(3))
///     .max_payload(64 * 1024)
///     .connect()
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until `connect` is awaited"]
pub struct ClientBuilder {
    settings: Settings,
    node: Option<u16>,
    node_ttl: Duration,
    max_payload: usize,
    trace_context: Option<TraceContext>,
    partitioned: BTreeMap<String, u16>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            settings: Settings {
                url,
                username: None,
                password: None,
                connect_timeout: DEFAULT_TIMEOUT,
                command_timeout: DEFAULT_TIMEOUT,
                retry_for: DEFAULT_RETRY_FOR,
            },
            node: None,
            node_ttl: NODE_TTL,
            max_payload: DEFAULT_MAX_PAYLOAD,
            trace_context: None,
            partitioned: BTreeMap::new(),
        }
    }

    /// The user and the password, instead of those in the URL.
    ///
    /// ```
    /// let builder = emq::Client::builder("redis://127.0.0.1").credentials("emq", "secret");
    /// ```
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.settings.username = Some(user.into());
        self.settings.password = Some(password.into());
        self
    }

    /// How long to wait for a connection to be made; 5 s by default.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = emq::Client::builder("redis://127.0.0.1").connect_timeout(Duration::from_secs(1));
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout.clamp(Duration::from_millis(1), LONGEST_TIMEOUT);
        self
    }

    /// How long to wait for the answer to one command; 5 s by default. After that the outcome is unknown, and the call
    /// is repeated.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = emq::Client::builder("redis://127.0.0.1").command_timeout(Duration::from_secs(1));
    /// ```
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.settings.command_timeout = timeout.clamp(Duration::from_millis(1), LONGEST_TIMEOUT);
        self
    }

    /// How long a call is repeated while the server is away, before its error is given; 10 s by default. A call under way
    /// then still has its command timeout.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = emq::Client::builder("redis://127.0.0.1").retry_for(Duration::from_secs(60));
    /// ```
    pub fn retry_for(mut self, duration: Duration) -> Self {
        self.settings.retry_for = duration;
        self
    }

    /// The Snowflake node number, 0 to 1023, instead of one leased from the server. No two processes that run at the
    /// same time may have the same; only the lower ten bits count.
    ///
    /// ```
    /// let builder = emq::Client::builder("redis://127.0.0.1").node(7);
    /// ```
    pub fn node(mut self, number: u16) -> Self {
        self.node = Some(number);
        self
    }

    /// How long a leased node number stays taken after this client was last heard of. For tests, which can't wait for a
    /// minute.
    #[doc(hidden)]
    pub fn node_ttl(mut self, ttl: Duration) -> Self {
        self.node_ttl = ttl.clamp(Duration::from_millis(30), LONGEST_TIMEOUT);
        self
    }

    /// The largest payload, encoded and with its headers, in bytes; 1 MiB by default. A larger one is an error before
    /// anything is sent.
    ///
    /// ```
    /// let builder = emq::Client::builder("redis://127.0.0.1").max_payload(64 * 1024);
    /// ```
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Where the W3C `traceparent` of each enqueued job comes from, usually the tracing system's current context. It is
    /// sent as a header, and the worker's span of the job names it.
    ///
    /// ```
    /// let builder = emq::Client::builder("redis://127.0.0.1")
    ///     .trace_context(|| Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()));
    /// ```
    pub fn trace_context(mut self, context: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.trace_context = Some(Box::new(context));
        self
    }

    /// Divides a queue into so many partitions, each a queue by itself on the server: one core of a server carries one queue,
    /// and in a Cluster the partitions are spread over its nodes. What this client enqueues into the queue goes to one of
    /// them, and its workers serve all. 1 to [`MAX_PARTITIONS`](crate::MAX_PARTITIONS); 0 counts as 1, and more as the most.
    ///
    /// Every program that enqueues into the queue has to say the same number, or lanes and deduplication keys are in two
    /// places. It can be changed later: no job is lost, and docs/scaling.md says what to see to.
    ///
    /// ```
    /// let builder = emq::Client::builder("redis-cluster://127.0.0.1").partitioned("mail", 16);
    /// ```
    pub fn partitioned(mut self, queue: impl Into<String>, partitions: u16) -> Self {
        self.partitioned.insert(queue.into(), partitions);
        self
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`]; and [`ConnectError::Queue`] if a queue that is to be divided can't have its name.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what it had opened.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), emq::ConnectError> {
    /// let client = emq::Client::builder("unix:///run/valkey/valkey.sock").connect().await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(self) -> Result<Client, ConnectError> {
        let Self { settings, node, node_ttl, max_payload, trace_context, partitioned } = self;
        for (queue, partitions) in &partitioned {
            Spread::check(queue, *partitions)?;
        }
        let connection = Connection::open(settings).await?;
        let node = match node {
            Some(number) => Node::configured(number),
            None => Node::leased(&connection, node_ttl).await?,
        };
        let spreads = partitioned.into_iter().map(|(queue, partitions)| {
            let spread = Spread::new(&connection, &queue, partitions)?;
            Ok((spread.name().clone(), Arc::new(spread)))
        });
        let spreads = spreads.collect::<Result<_, NameError>>()?;
        let inner = Inner {
            connection,
            node,
            stores: Stores::default(),
            confirmers: Confirmers::default(),
            max_payload,
            trace_context,
            subscriber: Mutex::default(),
            spreads,
        };
        Ok(Client { inner: Arc::new(inner) })
    }
}
