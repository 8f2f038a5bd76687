//! A job, and waiting for what has to happen.

use std::time::Duration;

use emq::{Client, ClientBuilder, Job};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// What takes no longer has an end, on any machine; what waits for ever hasn't.
pub(crate) const BOUNDED: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) n: u32,
}

impl Job for Work {
    const NAME: &'static str = "work";
}

/// A client that gives up on a silent server soon, and then tries again for long enough.
pub(crate) fn impatient(url: &str) -> ClientBuilder {
    patient(url).command_timeout(Duration::from_secs(1))
}

/// A client that waits for an answer for as long as one may take on a machine that is busy with other things.
pub(crate) fn patient(url: &str) -> ClientBuilder {
    let builder = Client::builder(url).node(1).connect_timeout(Duration::from_secs(10));
    builder.command_timeout(Duration::from_secs(20)).retry_for(MINUTE)
}

/// Looks again and again until it is so.
///
/// # Panics
///
/// If it doesn't come to pass.
pub(crate) async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let waited = timeout(MINUTE, async {
        while !look().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never: {what}"));
}
