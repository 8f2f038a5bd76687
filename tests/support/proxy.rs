//! A proxy between client and server that breaks connections where a test says.
//!
//! It reads the requests and replies that pass, so it can cut a connection after the
//! server has executed a certain command and before the client learns of it, the case in
//! which a client that repeats the command does the work twice.
//!
//! It runs on a thread of its own: a test may block its runtime or pause its clock.

mod fault;
mod link;

use std::fmt;
use std::io;
use std::net;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::port;
use fault::{Fate, Hole, Rule, Weather};

pub use fault::{Command, When, any, named};

/// Long enough for a busy machine, short enough to end a test that waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running proxy; dropping it closes its connections.
///
/// A lost connection loses all that is under way on it: requests that a client has sent
/// along with the one that is cut may or may not be executed.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the proxy and its connections share.
struct Shared {
    upstream: AtomicU16,
    rules: Mutex<Vec<Rule>>,
    weather: watch::Sender<Weather>,
    cuts: watch::Sender<u64>,
    requests: AtomicU64,
    connections: AtomicU64,
}

impl Proxy {
    /// Starts a proxy to a port on the loopback interface.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub fn start(upstream: u16) -> Self {
        let (port, listener) = port::listen();
        let shared = Arc::new(Shared {
            upstream: AtomicU16::new(upstream),
            rules: Mutex::default(),
            weather: watch::Sender::default(),
            cuts: watch::Sender::default(),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let served = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            if let Err(error) = serve(listener, &served) {
                eprintln!("the proxy on port {port} failed: {error}");
            }
        });
        Self { port, shared, thread: Some(thread) }
    }

    /// Returns the address for a server without a password; else use
    /// [`Server::url_at`](crate::Server::url_at).
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection after the server has executed a matching request, and before
    /// its reply is passed on.
    pub fn cut_reply(&self, matching: impl Fn(&Command) -> bool + Send + 'static, when: When) {
        self.rule(matching, when, Fate::CutReply);
    }

    /// Cuts the connection before a matching request is passed on: it isn't executed.
    pub fn cut_request(&self, matching: impl Fn(&Command) -> bool + Send + 'static, when: When) {
        self.rule(matching, when, Fate::CutRequest);
    }

    /// Swallows the reply to a matching request. The connection stays open and is silent
    /// from then on. Counts as a cut.
    pub fn lose_reply(&self, matching: impl Fn(&Command) -> bool + Send + 'static, when: When) {
        self.rule(matching, when, Fate::LoseReply);
    }

    /// Delays every request and every reply.
    pub fn delay(&self, time: Duration) {
        self.change(|weather| weather.delay = time);
    }

    /// Passes replies on byte by byte.
    pub fn chop(&self) {
        self.change(|weather| weather.chop = true);
    }

    /// Swallows all bytes both ways without closing anything. A connection that has lost
    /// bytes, or was opened meanwhile, stays silent after [`heal`](Self::heal).
    pub fn black_hole(&self) {
        self.change(|weather| weather.hole = Hole::Swallow);
    }

    /// Holds all bytes back without closing anything, as a broken line does: what was sent
    /// arrives after [`heal`](Self::heal).
    pub fn hold(&self) {
        self.change(|weather| weather.hole = Hole::Hold);
    }

    /// Ends [`black_hole`](Self::black_hole) and [`hold`](Self::hold).
    pub fn heal(&self) {
        self.change(|weather| weather.hole = Hole::None);
    }

    /// Closes new connections at once, as if nothing listened.
    pub fn refuse(&self) {
        self.change(|weather| weather.refuse = true);
    }

    /// Leads new connections to another port. Those that are open stay where they are.
    pub fn redirect(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
    }

    /// Closes all connections.
    pub fn sever(&self) {
        self.change(|weather| weather.severed += 1);
    }

    /// Removes all faults. Connections that a fault has silenced stay silent.
    pub fn clear(&self) {
        lock(&self.shared.rules).clear();
        self.change(|weather| {
            *weather = Weather { severed: weather.severed, ..Weather::default() };
        });
    }

    /// Returns how many requests a rule has struck.
    pub fn cuts(&self) -> u64 {
        *self.shared.cuts.borrow()
    }

    /// Waits until a rule has struck so many requests.
    ///
    /// # Panics
    ///
    /// If it takes too long.
    pub async fn wait_cuts(&self, count: u64) {
        let mut cuts = self.shared.cuts.subscribe();
        let reached = timeout(PATIENCE, cuts.wait_for(|cuts| *cuts >= count)).await;
        let reached = reached.unwrap_or_else(|_| panic!("{count} cuts in {PATIENCE:?}: there were {}", self.cuts()));
        reached.expect("the proxy lives");
    }

    /// Returns how many requests have come from clients.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Returns how many connections clients have opened.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    fn rule(&self, matching: impl Fn(&Command) -> bool + Send + 'static, when: When, fate: Fate) {
        lock(&self.shared.rules).push(Rule::new(matching, when, fate));
    }

    fn change(&self, change: impl FnOnce(&mut Weather)) {
        self.shared.weather.send_modify(change);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|weather| weather.over = true);
        if let Some(thread) = self.thread.take() {
            // It has said why if it failed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port)
            .field("upstream", &self.shared.upstream.load(Ordering::SeqCst))
            .field("weather", &*self.shared.weather.borrow())
            .field("cuts", &self.cuts())
            .finish_non_exhaustive()
    }
}

/// Accepts connections until the proxy is dropped; the runtime takes them with it.
fn serve(listener: net::TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let mut weather = shared.weather.subscribe();
        loop {
            let client = tokio::select! {
                _ = weather.wait_for(|weather| weather.over) => return Ok(()),
                accepted = listener.accept() => accepted?.0,
            };
            shared.connections.fetch_add(1, Ordering::SeqCst);
            if !shared.weather.borrow().refuse {
                tokio::spawn(link::run(client, Arc::clone(shared)));
            }
        }
    })
}

/// A test that has panicked in its own predicate must not hang the rest.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
