use std::{sync::Arc, time::Duration};

use fred::types::{ClientUnblockFlag, Key};

use super::{
    Store,
    connection::{Connection, Settings},
    error::{CallError, ConnectError},
};

/// How much longer than the server the client waits for the end of a blocking call, before it takes the link for mute.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits on one queue's marker, on a connection of its own.
///
/// The marker carries no job: a wake-up that is lost costs at most the time until the worker looks again by itself.
#[derive(Debug)]
pub(crate) struct Waiter {
    connection: Arc<Connection>,
    marker: Key,
}

impl Store {
    /// Opens a connection that waits for this queue.
    pub(crate) async fn waiter(&self, settings: Settings) -> Result<Waiter, ConnectError> {
        let connection = Connection::open_blocking(settings).await?;
        Ok(Waiter { connection, marker: self.keys.marker.clone() })
    }

    /// Sets the marker again after it was taken by a worker that has no use for it, so that another one wakes.
    pub(crate) async fn wake_another(&self) -> Result<(), CallError> {
        self.connection.command("ZADD", &self.keys.marker, &["0", "0"]).await
    }
}

impl Waiter {
    /// Waits until the marker is set, and takes it: `true`. `false` after `longest`, which is at least 10 ms: older
    /// servers take a smaller timeout for none at all.
    pub(crate) async fn wait(&self, longest: Duration) -> Result<bool, CallError> {
        let longest = longest.max(Duration::from_millis(10));
        let args = vec![self.marker.as_bytes().into(), format!("{:.3}", longest.as_secs_f64()).into()];
        let reply = self.connection.command_that_blocks("BZPOPMIN", &self.marker, args, longest + PATIENCE).await?;
        Ok(!reply.is_null())
    }

    /// Makes a wait that is under way answer `false` now. Its future has to be awaited to its end all the same: a
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
