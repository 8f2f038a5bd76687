//! The partitions of the queues that a worker serves: all that each of them ever had.

use std::{collections::HashSet, time::Duration};

use tokio::time::sleep;

use super::builder::Served;
use crate::{
    client::Client,
    job::QueueName,
    store::{ConnectError, Store},
};

/// How often is looked whether there are more by now.
const LOOK: Duration = Duration::from_secs(10);

/// A partition, which for a queue that isn't divided is the queue.
pub(super) struct Partition {
    pub(super) store: Store,
    /// Which of the worker's queues it is of.
    pub(super) queue: usize,
}

/// What a worker of these queues is to serve.
pub(super) async fn find(client: &Client, queues: &[Served]) -> Result<Vec<Partition>, ConnectError> {
    let mut found: Vec<Partition> = Vec::new();
    // One may be named as a queue by itself, too.
    let mut names = HashSet::new();
    for (queue, served) in queues.iter().enumerate() {
        let partitions = client.announced_partitions(&served.name, 1).await?.into_iter();
        let new = partitions.filter(|store| names.insert(store.name().clone()));
        found.extend(new.map(|store| Partition { store, queue }));
    }
    Ok(found)
}

/// Keeps the server in mind of how many partitions of a queue are served, and tells of those that have come since.
pub(super) async fn watch(client: Client, queue: QueueName, served: u16) {
    let mut were = served;
    loop {
        sleep(LOOK).await;
        match client.announced_partitions(&queue, served).await {
            Ok(partitions) if partitions.len() > usize::from(were) => {
                let are = partitions.len();
                tracing::warn!(
                    %queue, served, are,
                    "others enqueue into partitions of the queue that this worker doesn't serve; start it again"
                );
                were = u16::try_from(are).unwrap_or(u16::MAX);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, %queue, "can't look for new partitions"),
        }
    }
}
