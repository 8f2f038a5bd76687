//! Producers that enqueue all the time.

use std::time::Duration;

use emq::{EnqueueError, JobId, Queue};
use tokio::{sync::watch, task::JoinSet};

use crate::jobs::Count;

/// How many producers there are.
const PRODUCERS: usize = 4;

/// How long a durable enqueue waits for replicas.
const WITHIN: Duration = Duration::from_secs(1);

/// Producers that enqueue into one queue, until they are asked what they have enqueued.
pub(crate) struct Load {
    enough: watch::Sender<bool>,
    producers: JoinSet<Taken>,
}

/// What the server said it has taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// With all the durability that was asked for.
    pub(crate) durable: Vec<JobId>,
    /// With less.
    pub(crate) short: Vec<JobId>,
    /// Whose enqueue was given up, and may have been carried out or not.
    pub(crate) unknown: Vec<JobId>,
}

impl Load {
    /// Of enqueues that all have to go through.
    pub(crate) fn on(queue: &Queue) -> Self {
        Self::durable(queue, 0)
    }

    /// Of enqueues that are to be on so many replicas.
    pub(crate) fn durable(queue: &Queue, replicas: u32) -> Self {
        let (enough, is_enough) = watch::channel(false);
        let mut producers = JoinSet::new();
        for _ in 0..PRODUCERS {
            producers.spawn(produce(queue.clone(), replicas, is_enough.clone()));
        }
        Self { enough, producers }
    }

    /// Ends it, and answers what was enqueued.
    pub(crate) async fn enqueued(self) -> Vec<JobId> {
        let taken = self.taken().await;
        assert_eq!((taken.short.len(), taken.unknown.len()), (0, 0), "all of them go through");
        taken.durable
    }

    /// Ends it, and answers what is known of each job.
    pub(crate) async fn taken(self) -> Taken {
        self.enough.send(true).unwrap();
        self.producers.join_all().await.into_iter().fold(Taken::default(), |mut all, one| {
            all.durable.extend(one.durable);
            all.short.extend(one.short);
            all.unknown.extend(one.unknown);
            all
        })
    }
}

async fn produce(queue: Queue, replicas: u32, enough: watch::Receiver<bool>) -> Taken {
    let mut taken = Taken::default();
    while !*enough.borrow() {
        let enqueue = queue.enqueue(Count { n: 1 });
        let outcome = if replicas == 0 { enqueue.await } else { enqueue.durable(replicas, WITHIN).await };
        match outcome {
            Ok(ticket) => taken.durable.push(ticket.id()),
            Err(EnqueueError::NotDurable { ticket, .. }) => taken.short.push(ticket.id()),
            Err(EnqueueError::Call { id, .. }) => taken.unknown.push(id),
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    taken
}
