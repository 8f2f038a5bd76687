//! A job that counts, and a worker that runs it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use emq::{Client, Completion, Handler, Job, JobError, Worker, WorkerHandle, inject::Scope};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) n: u64,
}

impl Job for Count {
    const NAME: &'static str = "count";
}

/// What the jobs have counted, and a bell that rings at each.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    sum: Arc<AtomicU64>,
    bell: Arc<Notify>,
}

impl Counter {
    /// Waits until the jobs have counted so far.
    pub(crate) async fn reaches(&self, sum: u64) {
        while self.sum.load(Ordering::SeqCst) < sum {
            self.bell.notified().await;
        }
    }
}

impl Handler<Counter> for Count {
    async fn run(self, scope: Scope<Counter>) -> Result<Completion, JobError> {
        scope.state().sum.fetch_add(self.n, Ordering::SeqCst);
        scope.state().bell.notify_one();
        Ok(Completion::empty())
    }
}

/// Starts a worker for these queues.
pub(crate) fn start(client: &Client, counter: &Counter, queues: &[String]) -> WorkerHandle {
    let builder = Worker::builder(client).state(counter.clone()).register::<Count>();
    let worker = queues.iter().fold(builder, emq::WorkerBuilder::queue).build().unwrap();
    let handle = worker.handle();
    tokio::spawn(worker.run());
    handle
}
