use std::{sync::Arc, time::Duration};

use fred::types::{ClientUnblockFlag, Key, Value};
use futures_util::future::join;

use super::{
    Store,
    connection::{Connection, Settings},
    error::{CallError, ConnectError},
    reply::{Reply, unlike},
    script::Invocation,
};

/// How much longer than the server the client waits for the end of a blocking call, before it takes the link for mute.
const PATIENCE: Duration = Duration::from_secs(2);

/// Older servers take a shorter timeout for none at all.
const SHORTEST: Duration = Duration::from_millis(10);

/// Waits on the markers of queues, on a connection of its own.
///
/// The marker carries no job: a wake-up that is lost costs at most the time until the worker looks again by itself.
#[derive(Debug)]
pub(crate) struct Waiter {
    connection: Arc<Connection>,
    markers: Vec<Key>,
}

impl Store {
    /// Sets the marker again after it was taken by a worker that has no use for it, so that another one wakes.
    pub(crate) async fn wake_another(&self) -> Result<(), CallError> {
        self.connection.command("ZADD", &self.keys.marker, &["0", "0"]).await
    }
}

impl Waiter {
    /// Opens a connection that waits for these queues, which on a Cluster is one.
    pub(crate) async fn open(settings: Settings, queues: &[&Store]) -> Result<Self, ConnectError> {
        let connection = Connection::open_blocking(settings).await?;
        Ok(Self { connection, markers: queues.iter().map(|store| store.keys.marker.clone()).collect() })
    }

    /// Waits until the marker of one of these is set, and takes it: which of all that was. `None` after `longest`, which is
    /// at least 10 ms. Of several that are set, the first is taken.
    pub(crate) async fn wait(&self, queues: &[usize], longest: Duration) -> Result<Option<usize>, CallError> {
        let markers: Vec<&Key> = queues.iter().map(|at| &self.markers[*at]).collect();
        let Some(first) = markers.first() else { return Ok(None) };
        let reply = self.take(first, &markers, longest.max(SHORTEST)).await?;
        if reply.is_null() {
            return Ok(None);
        }
        let mut reply = Reply::list("BZPOPMIN", reply)?;
        let taken = reply.bytes()?;
        let at = self.markers.iter().position(|marker| marker.as_bytes() == taken);
        at.map(Some).ok_or_else(|| unlike("BZPOPMIN", "another key"))
    }

    /// Waits until this marker is set, and takes it, or for `longest`, at least 10 ms; then calls a script. Both are sent at
    /// once, and the server comes to the script when it doesn't block any more, for whatever reason. Not repeated.
    pub(super) async fn wait_and_call(
        &self,
        marker: &Key,
        longest: Duration,
        call: Invocation,
    ) -> Result<Value, CallError> {
        let longest = longest.max(SHORTEST);
        let markers = [marker];
        let waiting = self.take(marker, &markers, longest);
        let called = self.connection.call_behind(marker, call, longest + PATIENCE);
        // Polled, and with that sent, in this order.
        let (waited, called) = join(waiting, called).await;
        // A wait that is refused is over at once: that is not to become a loop of calls.
        waited.and(called)
    }

    /// `first` says which node of a Cluster is asked.
    async fn take(&self, first: &Key, markers: &[&Key], longest: Duration) -> Result<Value, CallError> {
        let mut args: Vec<Value> = markers.iter().map(|marker| marker.as_bytes().into()).collect();
        args.push(format!("{:.3}", longest.as_secs_f64()).into());
        self.connection.command_that_blocks("BZPOPMIN", first, args, longest + PATIENCE).await
    }

    /// Makes a wait that is under way answer `None` now. Its future has to be awaited to its end all the same: a
    /// blocking call that is dropped would swallow the next marker.
    pub(crate) async fn interrupt(&self) {
        use fred::interfaces::ClientInterface as _;
        let _ = self.connection.client().unblock_self(Some(ClientUnblockFlag::Timeout)).await;
    }

    pub(crate) fn close(&self) {
        self.connection.close();
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.connection.reconnects()
    }
}
