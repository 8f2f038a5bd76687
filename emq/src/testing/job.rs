use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use tower::{Service as _, ServiceExt as _};

use super::claimed;
use crate::{
    inject::Reports,
    job::{Handler, QueueName, encode},
    layer::{Delivery, Ended, JobLayer, LeaseKeeper, Outcome, Route, TraceLayer, UserLayer, Writer, handler, stack},
    store::{CallError, Claimed, Lease, Settled},
};

/// Runs one job through a worker's whole stack, with a recorder in place of the server.
///
/// Everything but the server is as in a worker: the payload is encoded and decoded, state and context are injected, the
/// job's timeout and your layers apply, panics are caught, and what would be written is the answer.
///
/// # Examples
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)] struct EnrollJob { student: u64 }
/// # impl emq::Job for EnrollJob { const NAME: &'static str = "enroll"; }
/// # impl emq::Handler<u64> for EnrollJob {
/// #     async fn run(self, scope: emq::inject::Scope<u64>) -> Result<emq::Completion, emq::JobError> {
/// #         if self.student == 0 { return Err(emq::JobError::permanent("no such student")); }
/// #         emq::Completion::of(&(self.student + scope.state()))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use emq::{Completion, layer::Outcome, testing::JobTest};
///
/// let outcome = JobTest::of(EnrollJob { student: 7 }).run(1_000).await;
/// assert_eq!(outcome, Outcome::Done(Completion::of(&1_007).unwrap()));
///
/// let outcome = JobTest::of(EnrollJob { student: 0 }).run(1_000).await;
/// assert_eq!(outcome, Outcome::Dead { error: "no such student".into() });
/// # }
/// ```
#[must_use = "nothing runs until `run` is awaited"]
pub struct JobTest<J> {
    job: J,
    changes: Vec<Change>,
    layers: Vec<UserLayer>,
}

/// A change to the job as it is claimed.
type Change = Box<dyn FnOnce(&mut Claimed) + Send>;

impl<J> fmt::Debug for JobTest<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobTest").finish_non_exhaustive()
    }
}

impl<J> JobTest<J> {
    /// The first run of this job.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// let test = emq::testing::JobTest::of(PingJob {});
    /// ```
    pub fn of(job: J) -> Self {
        Self { job, changes: Vec::new(), layers: Vec::new() }
    }

    /// The run after so many failures.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// let test = emq::testing::JobTest::of(PingJob {}).failures(4);
    /// ```
    pub fn failures(self, failures: u32) -> Self {
        self.changed(move |job| {
            job.failures = failures;
            job.lease = Lease::new(job.lease.id(), u64::from(failures) + 1);
        })
    }

    /// A run with this header.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// let test = emq::testing::JobTest::of(PingJob {}).header("tenant", "north");
    /// ```
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.changed(move |job| {
            job.headers.insert(name, value);
        })
    }

    /// A run whose payload isn't the job's own but these bytes: an older version's, or broken ones.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// let test = emq::testing::JobTest::of(PingJob {}).payload("not JSON");
    /// ```
    pub fn payload(self, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        self.changed(move |job| job.payload = bytes.into())
    }

    /// A layer around the job, as [`WorkerBuilder::layer`](crate::WorkerBuilder::layer); the first is the outermost.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// use tower::limit::ConcurrencyLimitLayer;
    ///
    /// let test = emq::testing::JobTest::of(PingJob {}).layer(ConcurrencyLimitLayer::new(1));
    /// ```
    pub fn layer(mut self, layer: impl JobLayer) -> Self {
        self.layers.push(UserLayer::new(layer));
        self
    }

    fn changed(mut self, change: impl FnOnce(&mut Claimed) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Runs it with this state, and answers what a worker would have written.
    ///
    /// # Panics
    ///
    /// If the payload can't be encoded. A panic of the job is an outcome like any other failure.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// # impl<S: Send + Sync + 'static> emq::Handler<S> for PingJob {
    /// #     async fn run(self, _: emq::inject::Scope<S>) -> Result<emq::Completion, emq::JobError> {
    /// #         Ok(emq::Completion::empty())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let outcome = emq::testing::JobTest::of(PingJob {}).run(()).await;
    /// assert_eq!(outcome.word(), "done");
    /// # }
    /// ```
    pub async fn run<S>(self, state: S) -> Outcome
    where
        S: Send + Sync + 'static,
        J: Handler<S>,
    {
        self.run_reporting(state).await.0
    }

    /// As [`run`](Self::run), and answers beside it what the run told of itself: its progress and the lines of its log.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct ImportJob {}
    /// # impl emq::Job for ImportJob { const NAME: &'static str = "import"; }
    /// # impl<S: Send + Sync + 'static> emq::Handler<S> for ImportJob {
    /// #     async fn run(self, scope: emq::inject::Scope<S>) -> Result<emq::Completion, emq::JobError> {
    /// #         scope.context().log("empty").await?;
    /// #         Ok(emq::Completion::empty())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (_, reports) = emq::testing::JobTest::of(ImportJob {}).run_reporting(()).await;
    /// assert_eq!(reports.log, ["empty"]);
    /// # }
    /// ```
    pub async fn run_reporting<S>(self, state: S) -> (Outcome, Reports)
    where
        S: Send + Sync + 'static,
        J: Handler<S>,
    {
        #[expect(clippy::expect_used, reason = "documented: a test is to fail here")]
        let payload = encode(&self.job).expect("the payload can't be encoded as JSON");
        let mut job = claimed(J::NAME, payload);
        self.changes.into_iter().for_each(|change| change(&mut job));

        let outside = stack::Outside {
            trace: TraceLayer::new(),
            keeper: LeaseKeeper::detached(),
            writer: Arc::new(Accepting),
            give_back: Arc::default(),
        };
        let mut route = Route::default();
        route.add([J::NAME], &stack::job(&[], handler::<S, J>(Arc::new(state))));
        let mut stack = stack::stack(outside, &self.layers, route);

        let queue = QueueName::new(J::OPTIONS.queue).unwrap_or_else(|_| QueueName::for_test());
        let delivery = Delivery::new(&queue, job, J::OPTIONS);
        let context = delivery.context().clone();
        let Ok(ready) = stack.ready().await;
        let Ok(ended) = ready.call(delivery).await;
        let outcome = match ended {
            Ended::Settled { outcome, .. } | Ended::Unsettled { outcome } => outcome,
            // Nobody takes a lease away here.
            Ended::Lost => Outcome::Release,
        };
        (outcome, context.reports())
    }
}

/// Takes the place of the server: whatever is to be written is accepted, and the outcome is the test's answer.
struct Accepting;

impl Writer for Accepting {
    fn write<'a>(&'a self, _: &'a Delivery, _: &'a Outcome) -> BoxFuture<'a, Result<Settled, CallError>> {
        Box::pin(std::future::ready(Ok(Settled::Accepted)))
    }
}
