//! A job, and waiting for what has to happen.

use std::time::Duration;

use emq::{Client, ClientBuilder, Job};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) n: u32,
}

impl Job for Work {
    const NAME: &'static str = "work";
}

/// A client that gives up on a silent server soon, and then tries again for long enough.
pub(crate) fn impatient(url: &str) -> ClientBuilder {
    Client::builder(url)
        .node(1)
        .connect_timeout(Duration::from_secs(1))
        .command_timeout(Duration::from_millis(300))
        .retry_for(Duration::from_secs(20))
}

/// Looks again and again until it is so.
///
/// # Panics
///
/// If it doesn't come to pass.
pub(crate) async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let waited = timeout(Duration::from_secs(20), async {
        while !look().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never: {what}"));
}
