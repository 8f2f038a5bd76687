//! What a client knows of a queue that it enqueues into partition by partition.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};

use super::{names::names, place};
use crate::{
    job::{JobId, NameError, QueueName},
    store::{CallError, Connection, Item, Store},
};

/// The most partitions of one queue: 256.
pub const MAX_PARTITIONS: u16 = 256;

/// How long the server is trusted to know how many partitions there are: it may have come back empty.
const TRUSTED_FOR: Duration = Duration::from_secs(10);

/// The partitions of a queue that take new jobs.
#[derive(Debug)]
pub(crate) struct Spread {
    partitions: Vec<Store>,
    announced: OnceCell<()>,
    announced_at: Mutex<Option<Instant>>,
}

impl Spread {
    /// Whether a queue can be divided so.
    pub(crate) fn check(queue: &str, count: u16) -> Result<Vec<QueueName>, NameError> {
        names(&QueueName::new(queue)?, count.min(MAX_PARTITIONS))
    }

    /// 0 partitions count as 1, and more than there can be as the most.
    pub(crate) fn new(connection: &Arc<Connection>, queue: &str, count: u16) -> Result<Self, NameError> {
        let partitions =
            Self::check(queue, count)?.into_iter().map(|name| Store::new(Arc::clone(connection), name)).collect();
        Ok(Self { partitions, announced: OnceCell::new(), announced_at: Mutex::new(None) })
    }

    /// Of the queue, which is that of its first partition.
    pub(crate) fn name(&self) -> &QueueName {
        self.at(0).name()
    }

    pub(crate) fn partitions(&self) -> &[Store] {
        &self.partitions
    }

    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.partitions.len()).unwrap_or(MAX_PARTITIONS)
    }

    /// Which of them a job goes to.
    pub(crate) fn place(&self, item: &Item) -> usize {
        place::of_item(item, self.count()).into()
    }

    /// Lets a job of a lane hold its key against the jobs of its lane alone: those of other lanes are elsewhere.
    pub(crate) fn scope(item: &mut Item) {
        if let Some(group) = &item.group {
            item.unique = item.unique.take().map(|unique| unique.within(group));
        }
    }

    pub(super) fn of_id(&self, id: JobId) -> &Store {
        self.at(place::of_id(id, self.count()))
    }

    pub(super) fn of_group(&self, group: &str) -> &Store {
        self.at(place::of_group(group, self.count()))
    }

    fn at(&self, place: u16) -> &Store {
        &self.partitions[usize::from(place)]
    }

    /// Has the server know that the queue has so many partitions, before the first job is in one of them: from then on
    /// workers and operators look into all of them, whatever they believe themselves.
    pub(crate) async fn announce(self: &Arc<Self>) -> Result<(), CallError> {
        let announce = async || -> Result<(), CallError> {
            self.tell().await?;
            *self.announced_at() = Some(Instant::now());
            Ok(())
        };
        self.announced.get_or_try_init(announce).await?;
        // Later ones hold nobody up: what the first one was for is done, unless the server has forgotten.
        let is_old = {
            let mut at = self.announced_at();
            let is_old = at.is_some_and(|at| at.elapsed() >= TRUSTED_FOR);
            if is_old {
                *at = Some(Instant::now());
            }
            is_old
        };
        if is_old {
            let spread = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = spread.tell().await {
                    tracing::debug!(%error, "the number of partitions can't be told now");
                }
            });
        }
        Ok(())
    }

    async fn tell(&self) -> Result<(), CallError> {
        self.at(0).partitions(self.count()).await.map(drop)
    }

    fn announced_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.announced_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
