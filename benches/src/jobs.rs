//! The jobs that are measured: they do nothing.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use emq::{BoxError, Client, Draft, IntoDraft, JobContext, JobError, State, Worker, WorkerBuilder, job};
use tokio::sync::mpsc::UnboundedSender;

/// The queue of all jobs but for those that say otherwise.
pub(crate) const QUEUE: &str = "bench";

/// The most jobs of one `enqueue_many` in a preparation.
const CHUNK: u64 = 10_000;

/// Does nothing.
#[job(queue = "bench", derive(Clone))]
pub(crate) async fn noop(body: String) -> Result<(), JobError> {
    drop(body);
    Ok(())
}

/// Does nothing, and has a result.
#[job(queue = "bench", derive(Clone))]
pub(crate) async fn answer(body: String) -> Result<String, JobError> {
    Ok(body)
}

/// Fails at its first run, each fifth of them.
#[job(queue = "bench", backoff = fixed("1ms", jitter = 0.0), derive(Clone))]
pub(crate) async fn falter(body: String, ctx: JobContext) -> Result<(), JobError> {
    if ctx.failures() == 0 && body.ends_with("!") {
        return Err(JobError::new("the first time"));
    }
    Ok(())
}

/// Fails for good.
#[job(queue = "bench", max_attempts = 1, derive(Clone))]
pub(crate) async fn fail(body: String) -> Result<(), JobError> {
    Err(JobError::new(body))
}

/// Panics.
#[job(queue = "bench", max_attempts = 1, derive(Clone))]
pub(crate) async fn panic(body: String) -> Result<(), JobError> {
    panic!("{body}");
}

/// Tells how long after its enqueue it began.
#[job(queue = "bench", derive(Clone))]
pub(crate) async fn clocked(enqueued: u64, State(told): State<Told>) -> Result<(), JobError> {
    // A run that isn't listened to is a warm-up.
    let _ = told.0.send(now().saturating_sub(Duration::from_nanos(enqueued)));
    Ok(())
}

/// Where [`clocked`] tells.
#[derive(Clone, Debug)]
pub(crate) struct Told(pub(crate) UnboundedSender<Duration>);

/// The time since this was called first: what can be compared in one process.
pub(crate) fn now() -> Duration {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    EPOCH.get_or_init(Instant::now).elapsed()
}

/// What is put into a job for a payload of `bytes` bytes.
pub(crate) fn body(bytes: usize) -> String {
    "x".repeat(bytes.saturating_sub(r#"{"body":""}"#.len()))
}

/// Enqueues this many of what `job` makes of a number.
pub(crate) async fn fill<D: IntoDraft>(client: &Client, count: u64, job: impl Fn(u64) -> D) -> Result<(), BoxError> {
    let mut first = 0;
    while first < count {
        let until = count.min(first + CHUNK);
        client.enqueue_many((first..until).map(&job)).await?;
        first = until;
    }
    Ok(())
}

/// The `n`th job of those that are spread over so many lanes.
pub(crate) fn in_lane(n: u64, lanes: u64, body: &str) -> Draft<NoopJob> {
    Draft::of(NoopJob { body: body.to_owned() }).group(format!("lane-{}", n % lanes))
}

/// A worker of the jobs that have no state.
pub(crate) fn worker(client: &Client, concurrency: usize) -> WorkerBuilder {
    Worker::builder(client)
        .register::<NoopJob>()
        .register::<AnswerJob>()
        .register::<FalterJob>()
        .register::<FailJob>()
        .register::<PanicJob>()
        .concurrency(concurrency)
}
