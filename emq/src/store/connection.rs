//! A connection to the server, with what the client library's defaults would lose or double set right.
//!
//! * One attempt per command: fred would else send a script again whose reply was lost, behind our back.
//! * A reconnect policy without end, and a supervisor: without one, or when it is used up, fred's router ends and every
//!   later command hangs.
//! * A timeout per command, a TCP user timeout, and a watchdog of our own: fred's check for a mute connection is reset by
//!   every write, so it never fires under load.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use fred::{
    clients::Client,
    error::Error as FredError,
    interfaces::{ClientLike as _, EventInterface as _},
    types::{
        Builder, RespVersion,
        config::{Config, ReconnectPolicy, Server, ServerConfig, TcpConfig, UnresponsiveConfig},
    },
};
use futures_util::future::{FusedFuture as _, FutureExt as _};
use socket2::TcpKeepalive;
use tokio::{
    sync::{
        SemaphorePermit,
        broadcast::{self, error::RecvError},
        oneshot,
    },
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    error::{CallError, ConnectError, classify_connect, is_timeout},
    server,
};

/// How many calls may be under way at once on one connection.
const MAX_CALLS: usize = 512;

/// How many events of a connection may wait for their receivers: reconnects and such, or messages of channels.
const EVENTS: usize = 256;
const MESSAGES: usize = 2_048;

/// After how many timeouts in a row the connection is taken for mute and made anew.
const TIMEOUTS_UNTIL_MUTE: u32 = 2;

/// The shortest time between two connections made anew because the server is a replica.
const BETWEEN_REPLICAS: Duration = Duration::from_secs(2);

/// The pause before a check that the server refused is made again.
const CHECK_PAUSE: Duration = Duration::from_millis(500);

/// What a connection is made from.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) retry_for: Duration,
}

impl fmt::Debug for Settings {
    // Neither the URL nor the password: both may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("retry_for", &self.retry_for)
            .finish_non_exhaustive()
    }
}

impl Settings {
    pub(super) fn config(&self) -> Result<Config, ConnectError> {
        let url = match self.url.strip_prefix("unix:") {
            Some(path) => format!("redis+unix:{path}"),
            None => self.url.clone(),
        };
        let scheme = url.split(':').next().unwrap_or_default();
        let wants_tls = scheme.starts_with("rediss") || scheme.starts_with("valkeys");
        if wants_tls && !cfg!(any(feature = "tls-rustls", feature = "tls-native")) {
            return Err(ConnectError::TlsDisabled);
        }
        if !["redis", "rediss", "valkey", "valkeys"].contains(&scheme.split(['-', '+']).next().unwrap_or_default()) {
            return Err(ConnectError::Url { reason: format!("it begins with {scheme:?}") });
        }
        let mut config =
            Config::from_url(&url).map_err(|error| ConnectError::Url { reason: error.details().to_owned() })?;
        check_address(&config.server)?;
        config.version = RespVersion::RESP3;
        config.fail_fast = true;
        config.username = self.username.clone().or(config.username).map(|user| quoted(&user));
        config.password = self.password.clone().or(config.password).map(|password| quoted(&password));
        Ok(config)
    }

    /// A client that isn't connected yet. `command_timeout` of zero is for one that blocks.
    fn client(&self, command_timeout: Duration, events: usize) -> Result<Client, ConnectError> {
        let config = self.config()?;
        let server = address(config.server.clone());
        let mut builder = Builder::from_config(config);
        builder.with_connection_config(|connection| {
            connection.max_command_attempts = 1;
            // A command that a node of a Cluster sends elsewhere is an error, and the call is repeated. After MOVED the
            // library has learned where to. ASK, of a slot whose keys are under way, it would follow wrongly: its
            // router ends, or it mixes up replies. See `classify`.
            connection.max_redirections = 0;
            connection.connection_timeout = self.connect_timeout;
            connection.internal_command_timeout = self.connect_timeout;
            connection.unresponsive =
                UnresponsiveConfig { max_timeout: Some(self.command_timeout), interval: Duration::from_secs(1) };
            connection.tcp = TcpConfig {
                nodelay: Some(true),
                keepalive: Some(
                    TcpKeepalive::new()
                        .with_time(Duration::from_secs(15))
                        .with_interval(Duration::from_secs(5))
                        .with_retries(3),
                ),
                // What was written to a link that died must not be carried out when it heals, long after the caller
                // was told that the outcome is unknown.
                #[cfg(target_os = "linux")]
                user_timeout: Some(self.command_timeout),
                ..TcpConfig::default()
            };
        });
        builder.with_performance_config(|performance| {
            performance.default_command_timeout = command_timeout;
            performance.broadcast_channel_capacity = events;
        });
        let mut policy = ReconnectPolicy::new_exponential(0, 20, 2_000, 2);
        policy.set_jitter(20);
        builder.set_policy(policy);
        builder.build().map_err(|error| classify_connect(error, &server))
    }
}

/// Where a server is, without user and password.
/// A word of a line that a server reads: fred sends user and password in one, and what has a blank in it would be two
/// words, or after a line break a command of its own.
fn quoted(word: &str) -> String {
    use std::fmt::Write as _;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in word.bytes() {
        let _ = if is_plain(byte) { write!(quoted, "{}", char::from(byte)) } else { write!(quoted, "\\x{byte:02x}") };
    }
    quoted.push('"');
    quoted
}

/// The client library takes a URL that names nothing, and goes on to look for it.
fn check_address(server: &ServerConfig) -> Result<(), ConnectError> {
    let reason = match server {
        ServerConfig::Unix { path } if path.as_os_str().is_empty() => "it has no path",
        ServerConfig::Unix { .. } => return Ok(()),
        _ if server.hosts().is_empty() || server.hosts().iter().any(|server| server.host.is_empty()) => {
            "it has no host"
        }
        _ => return Ok(()),
    };
    Err(ConnectError::Url { reason: reason.into() })
}

fn address(server: ServerConfig) -> String {
    match server {
        ServerConfig::Unix { path } => path.display().to_string(),
        ServerConfig::Centralized { server } => server.to_string(),
        ServerConfig::Clustered { hosts, .. } | ServerConfig::Sentinel { hosts, .. } => {
            hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A connected client that stays connected until it is closed.
pub(crate) struct Connection {
    client: Client,
    settings: Settings,
    calls: tokio::sync::Semaphore,
    health: Arc<Health>,
    closed: CancellationToken,
}

/// What the supervisor and the calls tell each other.
#[derive(Debug, Default)]
struct Health {
    reconnects: AtomicU64,
    timeouts: AtomicU32,
    remaking: AtomicBool,
    left_a_replica: Mutex<Option<Instant>>,
    /// Why the server isn't to be used, since the last reconnect.
    unfit: RwLock<Option<CallError>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects for commands, and checks the server.
    pub(crate) async fn open(settings: Settings) -> Result<Arc<Self>, ConnectError> {
        Self::open_with(settings, EVENTS).await
    }

    /// Connects for channels, whose messages may come faster than they are taken.
    pub(super) async fn open_listening(settings: Settings) -> Result<Arc<Self>, ConnectError> {
        Self::open_with(settings, MESSAGES).await
    }

    async fn open_with(settings: Settings, events: usize) -> Result<Arc<Self>, ConnectError> {
        let client = settings.client(settings.command_timeout, events)?;
        let connection = Self::supervised(client, settings).await?;
        match server::check(&connection.client).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                connection.close();
                Err(error)
            }
        }
    }

    /// Connects for commands that block. No other command can pass while one does.
    pub(super) async fn open_blocking(settings: Settings) -> Result<Arc<Self>, ConnectError> {
        let client = settings.client(Duration::ZERO, EVENTS)?;
        Self::supervised(client, settings).await
    }

    async fn supervised(client: Client, settings: Settings) -> Result<Arc<Self>, ConnectError> {
        let handle = init(client.clone()).await?;
        // From here on: the first connection is announced as well.
        let reconnected = client.reconnect_rx();
        let connection = Arc::new(Self {
            client: client.clone(),
            settings,
            calls: tokio::sync::Semaphore::new(MAX_CALLS),
            health: Arc::default(),
            closed: CancellationToken::new(),
        });
        // The task holds no reference to the connection, so that dropping the last one ends both.
        tokio::spawn(supervise(client, handle, reconnected, Arc::clone(&connection.health), connection.closed.clone()));
        Ok(connection)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How often the connection was made anew.
    pub(crate) fn reconnects(&self) -> u64 {
        self.health.reconnects.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Ends the connection; calls under way fail as unknown, later ones as closed.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        self.calls.close();
    }

    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, CallError> {
        self.calls.acquire().await.map_err(|_| CallError::Closed)
    }

    pub(super) fn check_usable(&self) -> Result<(), CallError> {
        if self.is_closed() {
            return Err(CallError::Closed);
        }
        match &*self.health.unfit.read().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The watchdog: makes the connection anew when calls time out one after the other, or the server is a replica.
    pub(super) fn observe<T>(&self, reply: &Result<T, CallError>) {
        if reply.as_ref().is_err_and(is_timeout) {
            let timeouts = self.health.timeouts.fetch_add(1, Ordering::Relaxed) + 1;
            if timeouts >= TIMEOUTS_UNTIL_MUTE && self.remake() {
                tracing::warn!("the server doesn't answer; the connection is made anew");
            }
            return;
        }
        // A plain store would make every call write to one shared cache line.
        if self.health.timeouts.load(Ordering::Relaxed) != 0 {
            self.health.timeouts.store(0, Ordering::Relaxed);
        }
        if reply.as_ref().is_err_and(CallError::is_of_a_replica) {
            self.leave_replica();
        }
    }

    /// A primary that becomes a replica keeps its connections. The name that it had may lead to the new primary by now.
    pub(super) fn leave_replica(&self) {
        let mut left = self.health.left_a_replica.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_none_or(|left| left.elapsed() >= BETWEEN_REPLICAS) {
            *left = Some(Instant::now());
            drop(left);
            if self.remake() {
                // Not louder: whose call it was is told.
                tracing::debug!("the server is a replica; the connection is made anew");
            }
        }
    }

    /// Makes the connection anew, unless that is under way, which is `false`: hundreds of calls may time out at once.
    ///
    /// In a task of its own: fred carries it out when it has reconnected, and while the server is away that is a wait
    /// without end, which no call may share.
    pub(super) fn remake(&self) -> bool {
        if !self.client.is_connected() || self.health.remaking.swap(true, Ordering::Relaxed) {
            return false;
        }
        let (client, health) = (self.client.clone(), Arc::clone(&self.health));
        let closed = self.closed.clone();
        tokio::spawn(async move {
            let remade = client.force_reconnection();
            let _ = closed.run_until_cancelled(remade).await;
            health.timeouts.store(0, Ordering::Relaxed);
            health.remaking.store(false, Ordering::Relaxed);
        });
        true
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Connects for the first time. fred's own future leaves its task running when it is dropped while it waits, and with it
/// a connection that nobody knows of.
async fn init(client: Client) -> Result<AbortOnDropHandle<Result<(), FredError>>, ConnectError> {
    let server = address(client.client_config().server);
    let (done, connected) = oneshot::channel();
    tokio::spawn(async move {
        let connected = client.init().await.map(AbortOnDropHandle::new);
        // Who waited may be gone: the handle ends the task then.
        let _ = done.send(connected);
    });
    let connected = connected.await.unwrap_or_else(|_| Err(FredError::new_canceled()));
    connected.map_err(|error| classify_connect(error, &server))
}

/// Counts reconnects, checks the server after each, revives fred's router if it ends, and ends it with the
/// connection: a client that is merely dropped lives on.
async fn supervise(
    client: Client,
    mut handle: AbortOnDropHandle<Result<(), FredError>>,
    mut reconnected: broadcast::Receiver<Server>,
    health: Arc<Health>,
    closed: CancellationToken,
) {
    let mut check = std::pin::pin!(futures_util::future::Fuse::terminated());
    loop {
        tokio::select! {
            () = closed.cancelled() => break,
            () = &mut check, if !check.is_terminated() => {}
            event = reconnected.recv() => {
                if matches!(event, Err(RecvError::Closed)) {
                    reconnected = client.reconnect_rx();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                health.reconnects.fetch_add(1, Ordering::Relaxed);
                // Another one that is under way was about the connection before.
                check.set(recheck(&client, &health).fuse());
            }
            _ = &mut handle => {
                tracing::warn!("the connection's task ended; starting it again");
                tokio::time::sleep(Duration::from_millis(100)).await;
                if closed.is_cancelled() {
                    break;
                }
                match client.init().await {
                    Ok(next) => handle = AbortOnDropHandle::new(next),
                    Err(error) => {
                        tracing::warn!(%error, "the server can't be reached");
                        // Ends at once, so that the next turn tries again.
                        handle = AbortOnDropHandle::new(tokio::spawn(async { Ok(()) }));
                    }
                }
            }
        }
    }
    handle.abort();
}

/// A server that was restarted empty, or replaced, may speak another wire now, or be too old. One that is loading its
/// data, or busy, is asked again until it says.
async fn recheck(client: &Client, health: &Health) {
    let unfit = loop {
        match server::check_again(client).await {
            Ok(()) => break None,
            Err(error @ (CallError::ForeignVersion { .. } | CallError::TooOld { .. })) => {
                tracing::error!(%error, "this client doesn't use the server until it is another");
                break Some(error);
            }
            Err(error) if error.is_transient() => {
                tracing::debug!(%error, "the server can't be checked yet");
                tokio::time::sleep(CHECK_PAUSE).await;
            }
            Err(error) => {
                tracing::debug!(%error, "the server can't be checked");
                return;
            }
        }
    };
    *health.unfit.write().unwrap_or_else(PoisonError::into_inner) = unfit;
}

#[cfg(all(test, not(any(feature = "tls-rustls", feature = "tls-native"))))]
mod tests {
    use super::*;

    #[test]
    fn without_tls_a_url_that_asks_for_it_is_refused() {
        for url in ["rediss://localhost", "valkeys://localhost", "rediss-cluster://localhost"] {
            let settings = Settings {
                url: url.into(),
                username: None,
                password: None,
                connect_timeout: Duration::ZERO,
                command_timeout: Duration::ZERO,
                retry_for: Duration::ZERO,
            };
            assert!(matches!(settings.config(), Err(ConnectError::TlsDisabled)), "{url}");
        }
    }
}
