//! The keeper and its layer, with a server that is played and a clock that is paused.

mod keeper;
mod layer;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{LeaseKeeper, renewals::Renew};
use crate::{
    job::{JobId, JobOptions, QueueName},
    layer::{Delivery, Outcome},
    store::{CallError, Extend, Extended, Settled},
    testing,
};

const SECOND: Duration = Duration::from_secs(1);

type Reply = Result<Vec<Extended>, CallError>;

/// A call that came to the played server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    /// Since the start of the test.
    at: Duration,
    queue: String,
    jobs: usize,
}

/// Plays the server: takes down every call, and answers it as the test says.
#[derive(Clone)]
struct Server {
    start: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
    failed: Arc<Mutex<Vec<(JobId, Outcome)>>>,
    answer: Answer,
}

type Answer = Arc<dyn Fn(&Call, usize) -> BoxFuture<'static, Reply> + Send + Sync>;

impl Server {
    /// `answer` is given the call and how many came before it.
    fn new<F: Future<Output = Reply> + Send + 'static>(
        answer: impl Fn(&Call, usize) -> F + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(move |call: &Call, n| Box::pin(answer(call, n)) as BoxFuture<'static, _>);
        Self { start: Instant::now(), calls: Arc::default(), failed: Arc::default(), answer }
    }

    fn that_renews() -> Self {
        Self::new(|call, _| std::future::ready(Ok(vec![Extended::Renewed; call.jobs])))
    }

    fn that_refuses() -> Self {
        Self::new(|call, _| std::future::ready(Ok(vec![Extended::Lost; call.jobs])))
    }

    fn that_is_away() -> Self {
        Self::new(|_, _| std::future::ready(Err(away())))
    }

    fn keeper(&self) -> LeaseKeeper {
        LeaseKeeper::on_this_runtime(self.clone())
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// When the calls came, in seconds.
    fn seconds(&self) -> Vec<u64> {
        self.calls().iter().map(|call| call.at.as_secs()).collect()
    }
}

impl Renew for Server {
    fn renew(&self, queue: QueueName, leases: Vec<Extend>) -> impl Future<Output = Reply> + Send + 'static {
        let call = Call { at: self.start.elapsed(), queue: queue.as_str().to_owned(), jobs: leases.len() };
        let mut calls = self.calls.lock().unwrap();
        let before = calls.len();
        calls.push(call.clone());
        (self.answer)(&call, before)
    }

    fn fail(
        &self,
        delivery: Delivery,
        outcome: Outcome,
    ) -> impl Future<Output = Result<Settled, CallError>> + Send + 'static {
        self.failed.lock().unwrap().push((delivery.id(), outcome));
        std::future::ready(Ok(Settled::Accepted))
    }
}

fn away() -> CallError {
    CallError::Unreachable { source: Arc::new(std::io::Error::other("away")) }
}

/// A job that was claimed just now for 30 s.
fn delivery() -> Delivery {
    testing::delivery("enroll")
}

/// A job that was claimed just now for 30 s, and wants this lease.
fn delivery_wanting(lease: Duration) -> Delivery {
    testing::delivery_with("enroll", JobOptions::new().lease(lease))
}
