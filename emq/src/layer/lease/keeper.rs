use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Delivery,
    held::{Held, Kept},
    renewals::renewals,
};
use crate::{
    client::Client,
    job::{JobId, QueueName},
    store::{ConnectError, Connection, Lease, Settings},
};

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
    /// Ends the renewing with the last keeper: the thread holds `held` as well.
    _running: Arc<DropGuard>,
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper").field("held", &self.held).finish_non_exhaustive()
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
        let (keeper, stop) = Self::without_thread();
        let held = Arc::clone(&keeper.held);
        // A call that fails is made again by the keeper itself, for as long as the leases last: a repeat further down
        // might renew what was given up meanwhile.
        let settings = Settings { retry_for: Duration::ZERO, ..client.settings() };
        let (started, connected) = oneshot::channel();
        let thread = std::thread::Builder::new().name("emq-lease".into());
        thread.spawn(move || run(held, stop, settings, started)).map_err(no_thread)?;
        connected.await.unwrap_or_else(|_| Err(no_thread(std::io::Error::other("the lease thread ended"))))?;
        Ok(keeper)
    }

    /// A keeper that renews nothing, for a stack without a server.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn detached() -> Self {
        Self::without_thread().0
    }

    /// A keeper whose renewing runs in the test's own runtime, and on its clock.
    #[cfg(test)]
    pub(super) fn on_this_runtime(server: impl super::renewals::Renew) -> Self {
        let (keeper, stop) = Self::without_thread();
        tokio::spawn(renewals(Arc::clone(&keeper.held), server, stop));
        keeper
    }

    fn without_thread() -> (Self, CancellationToken) {
        let stop = CancellationToken::new();
        let running = Arc::new(stop.clone().drop_guard());
        (Self { held: Arc::default(), _running: running }, stop)
    }

    /// Keeps a delivery's lease until the answer is dropped.
    pub(super) fn keep(&self, delivery: &Delivery) -> Kept {
        self.held.keep(delivery.clone())
    }

    /// Asks the server now whether this job, or any of the queue, is still to run.
    pub(crate) fn ask_now(&self, queue: &QueueName, id: Option<JobId>) {
        self.held.ask_now(queue, id);
    }

    /// Knows how many runs block their threads past their timeout, for as long as there is a keeper.
    pub(crate) fn stuck(&self) -> Stuck {
        Stuck(Arc::downgrade(&self.held))
    }

    /// The jobs in hand.
    pub(crate) fn in_hand(&self) -> Vec<(QueueName, Lease)> {
        self.held.in_hand()
    }
}

/// How many runs block their threads past their timeout. It keeps nothing alive.
#[derive(Clone, Debug)]
pub(crate) struct Stuck(Weak<Held>);

impl Stuck {
    pub(crate) fn count(&self) -> usize {
        self.0.upgrade().map_or(0, |held| held.stuck())
    }
}

fn no_thread(source: std::io::Error) -> ConnectError {
    ConnectError::Thread { source }
}

/// The keeper's thread.
fn run(
    held: Arc<Held>,
    stop: CancellationToken,
    settings: Settings,
    started: oneshot::Sender<Result<(), ConnectError>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(no_thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        let Some(connected) = stop.run_until_cancelled(Connection::open(settings)).await else { return };
        let connection = match connected {
            Ok(connection) => connection,
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        if started.send(Ok(())).is_ok() {
            renewals(held, Arc::clone(&connection), stop).await;
        }
        connection.close();
    });
}
