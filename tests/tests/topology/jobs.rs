//! A job that counts, and a worker that runs it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use emq::{Client, Completion, Handler, Job, JobError, JobId, Worker, WorkerHandle, inject::Scope};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) n: u64,
}

impl Job for Count {
    const NAME: &'static str = "count";
}

/// What the jobs have counted, how often each has run, and a bell that rings at each.
#[derive(Clone, Default)]
pub(crate) struct Counter {
    sum: Arc<AtomicU64>,
    runs: Arc<Mutex<BTreeMap<JobId, u32>>>,
    /// When the last one ran, and the longest that none did.
    pace: Arc<Mutex<(Option<Instant>, Duration)>>,
    bell: Arc<Notify>,
}

impl Counter {
    /// Waits until the jobs have counted so far.
    pub(crate) async fn reaches(&self, sum: u64) {
        while self.sum.load(Ordering::SeqCst) < sum {
            self.bell.notified().await;
        }
    }

    /// Notes a run.
    fn ran(&self, id: JobId, n: u64) {
        *self.runs.lock().unwrap().entry(id).or_default() += 1;
        let mut pace = self.pace.lock().unwrap();
        let pause = pace.0.map_or(Duration::ZERO, |last| last.elapsed());
        *pace = (Some(Instant::now()), pace.1.max(pause));
        self.sum.fetch_add(n, Ordering::SeqCst);
        self.bell.notify_one();
    }

    /// The longest time between two runs.
    pub(crate) fn longest_pause(&self) -> Duration {
        self.pace.lock().unwrap().1
    }

    /// How often the job has run.
    pub(crate) fn runs(&self, id: JobId) -> u32 {
        self.runs.lock().unwrap().get(&id).copied().unwrap_or_default()
    }

    /// How many jobs have run.
    pub(crate) fn jobs(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// How many runs there were beyond the first of each job.
    pub(crate) fn repeats(&self) -> u32 {
        self.runs.lock().unwrap().values().map(|runs| runs - 1).sum()
    }
}

impl Handler<Counter> for Count {
    async fn run(self, scope: Scope<Counter>) -> Result<Completion, JobError> {
        scope.state().ran(scope.context().id(), self.n);
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
