//! Which partitions a queue has, those among them that take new jobs no more.

use super::{MAX_PARTITIONS, Spread, names::names};
use crate::{
    client::Client,
    job::QueueName,
    store::{CallError, Store},
};

impl Client {
    /// All partitions that a queue ever had, as the server knows; the first is the queue itself. A queue that was never
    /// divided has one.
    pub(crate) async fn partitions(&self, queue: &QueueName) -> Result<Vec<Store>, CallError> {
        self.partitions_with(queue, 1).await
    }

    /// The same, after the server was told of those that this client enqueues into, and of `at_least` so many.
    pub(crate) async fn announced_partitions(&self, queue: &QueueName, at_least: u16) -> Result<Vec<Store>, CallError> {
        let declared = self.spread(queue).map_or(1, |spread| spread.count());
        self.partitions_with(queue, declared.max(at_least)).await
    }

    async fn partitions_with(&self, queue: &QueueName, at_least: u16) -> Result<Vec<Store>, CallError> {
        let first = self.store(queue.clone());
        let ever = first.partitions(at_least).await?;
        let spread = self.spread(queue);
        let known = spread.as_deref().map_or(std::slice::from_ref(&first), Spread::partitions);
        let count = usize::from(ever.min(MAX_PARTITIONS)).max(known.len());
        let mut partitions = known.to_vec();
        if partitions.len() < count {
            let names = names(queue, count as u16).map_err(|error| {
                // Nobody can have divided it: see `names`.
                CallError::UnexpectedReply { call: "partitions", detail: format!("{ever}: {error}") }
            })?;
            partitions.extend(names.into_iter().skip(known.len()).map(|name| self.store(name)));
        }
        Ok(partitions)
    }
}
