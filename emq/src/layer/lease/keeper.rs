use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Delivery, LeaseState};
use crate::{
    client::Client,
    job::QueueName,
    store::{ConnectError, Connection, Extend, Extended, Lease, MAX_BATCH, Settings, Store},
};

/// The shortest time between two renewals of one lease.
const SHORTEST_BEAT: Duration = Duration::from_millis(10);

/// Renews the leases of all jobs in hand: one call per queue every third of the lease.
///
/// It works on a thread, a runtime and a connection of its own, so that handlers which block every thread of the
/// application's runtime don't lose their leases.
///
/// # Clone
///
/// A clone is the same keeper. The last one dropped ends it; leases run out then.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: emq::Client) -> Result<(), emq::ConnectError> {
/// let keeper = emq::layer::LeaseKeeper::start(&client).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LeaseKeeper {
    held: Arc<Held>,
    /// Ends the thread with the last keeper. The thread itself holds `held` while it waits.
    _running: Arc<DropGuard>,
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper").field("in_hand", &self.held.leases().by_key.len()).finish_non_exhaustive()
    }
}

/// The leases in hand, shared with the keeper's thread.
struct Held {
    leases: Mutex<Leases>,
    /// A lease with a shorter beat than the current one has come.
    hurry: Notify,
    stop: CancellationToken,
}

#[derive(Default)]
struct Leases {
    by_key: HashMap<u64, Entry>,
    last_key: u64,
}

#[derive(Clone)]
struct Entry {
    queue: QueueName,
    term: Duration,
    state: Arc<LeaseState>,
    /// When it is to be renewed next.
    due: Instant,
}

impl Held {
    fn leases(&self) -> std::sync::MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease that is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct Kept {
    key: u64,
    held: Weak<Held>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(held) = self.held.upgrade() {
            held.leases().by_key.remove(&self.key);
        }
    }
}

impl LeaseKeeper {
    /// Starts the thread and connects.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server can't be reached, or no thread can be started.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the thread.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) -> Result<(), emq::ConnectError> {
    /// let keeper = emq::layer::LeaseKeeper::start(&client).await?;
    /// # Ok(()) }
    /// ```
    pub async fn start(client: &Client) -> Result<Self, ConnectError> {
        let keeper = Self::detached();
        let held = Arc::downgrade(&keeper.held);
        let stop = keeper.held.stop.clone();
        let settings = client.settings();
        let (started, connected) = oneshot::channel();
        let thread = std::thread::Builder::new().name("emq-lease".into());
        let unreachable = |source: std::io::Error| ConnectError::Unreachable { source: source.into() };
        thread.spawn(move || run(&held, &stop, settings, started)).map_err(unreachable)?;
        connected.await.unwrap_or_else(|_| Err(unreachable(std::io::Error::other("the lease thread ended"))))?;
        Ok(keeper)
    }

    /// A keeper that renews nothing, for a stack without a server.
    pub(crate) fn detached() -> Self {
        let stop = CancellationToken::new();
        let running = Arc::new(stop.clone().drop_guard());
        Self { held: Arc::new(Held { leases: Mutex::default(), hurry: Notify::new(), stop }), _running: running }
    }

    /// Keeps a delivery's lease until the answer is dropped.
    pub(super) fn keep(&self, delivery: &Delivery) -> Kept {
        let term = delivery.context().lease();
        let state = Arc::clone(delivery.lease_state());
        let now = Instant::now();
        // A job whose type wants another lease than the one it was claimed under gets it at once.
        let differs = state.until().saturating_duration_since(now).abs_diff(term) > beat(term);
        let due = if differs { now } else { now + beat(term) };
        let entry = Entry { queue: delivery.queue().clone(), term, state, due };
        let mut leases = self.held.leases();
        leases.last_key += 1;
        let key = leases.last_key;
        let hurry = leases.by_key.values().all(|other| due < other.due);
        leases.by_key.insert(key, entry);
        drop(leases);
        if hurry {
            self.held.hurry.notify_one();
        }
        Kept { key, held: Arc::downgrade(&self.held) }
    }

    /// The jobs in hand.
    pub(crate) fn in_hand(&self) -> Vec<(QueueName, Lease)> {
        let leases = self.held.leases();
        leases.by_key.values().map(|entry| (entry.queue.clone(), entry.state.lease())).collect()
    }
}

/// Every third of a lease.
fn beat(term: Duration) -> Duration {
    (term / 3).max(SHORTEST_BEAT)
}

fn run(
    held: &Weak<Held>,
    stop: &CancellationToken,
    settings: Settings,
    started: oneshot::Sender<Result<(), ConnectError>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(ConnectError::Unreachable { source: error.into() }));
            return;
        }
    };
    runtime.block_on(async {
        let connection = match Connection::open(settings).await {
            Ok(connection) => connection,
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        if started.send(Ok(())).is_ok() {
            let renew = Renewals { connection: Arc::clone(&connection), held: held.clone() };
            renew.until(stop).await;
        }
        connection.close();
    });
}

/// The loop of the keeper's thread.
struct Renewals {
    connection: Arc<Connection>,
    held: Weak<Held>,
}

impl Renewals {
    async fn until(&self, stop: &CancellationToken) {
        loop {
            let Some(next) = self.beat() else { return };
            let Some(held) = self.held.upgrade() else { return };
            let hurry = held.hurry.notified();
            tokio::select! {
                () = stop.cancelled() => return,
                () = hurry => {}
                () = sleep_or_forever(next) => {}
            }
        }
    }

    /// Gives up what ran out, sends what is due, and answers when there is something to do again. `None` at the end.
    fn beat(&self) -> Option<Option<Instant>> {
        let held = self.held.upgrade()?;
        let now = Instant::now();
        let mut leases = held.leases();
        leases.by_key.retain(|_, entry| {
            let lasts = entry.state.until() > now;
            if !lasts {
                entry.state.ran_out();
            }
            lasts
        });
        let mut due: HashMap<QueueName, Vec<(u64, Entry)>> = HashMap::new();
        if leases.by_key.values().any(|entry| entry.due <= now) {
            for (key, entry) in &mut leases.by_key {
                // What would be due before half a beat is over goes along: one call per beat and queue.
                if entry.due <= now + beat(entry.term) / 2 {
                    entry.due = now + beat(entry.term);
                    due.entry(entry.queue.clone()).or_default().push((*key, entry.clone()));
                }
            }
        }
        let next = leases.by_key.values().map(|entry| entry.due.min(entry.state.until())).min();
        drop(leases);
        for (queue, entries) in due {
            let store = Store::new(Arc::clone(&self.connection), queue);
            for batch in entries.chunks(MAX_BATCH) {
                tokio::spawn(renew(store.clone(), batch.to_vec(), self.held.clone()));
            }
        }
        Some(next)
    }
}

async fn sleep_or_forever(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Renews some leases of one queue. A call that isn't answered leaves them as they are: the next beat tries again, and
/// what runs out meanwhile is given up.
async fn renew(store: Store, entries: Vec<(u64, Entry)>, held: Weak<Held>) {
    let sent = Instant::now();
    let extends: Vec<_> =
        entries.iter().map(|(_, entry)| Extend { lease: entry.state.lease(), term: entry.term }).collect();
    let extended = match store.extend(&extends).await {
        Ok(extended) => extended,
        Err(error) => {
            tracing::warn!(%error, queue = %store.name(), jobs = entries.len(), "leases can't be renewed");
            return;
        }
    };
    let Some(held) = held.upgrade() else { return };
    for ((key, entry), extended) in entries.into_iter().zip(extended) {
        match extended {
            Extended::Renewed => entry.state.renew(sent + entry.term),
            Extended::Lost => {
                entry.state.refused();
                held.leases().by_key.remove(&key);
            }
        }
    }
}
