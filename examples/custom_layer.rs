//! Tower layers around jobs: one written here and Tower's own, for all jobs of a worker and for one of them.
//!
//! ```text
//! cargo run -p emq-examples --example custom_layer
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{
    env,
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use emq::{BoxError, Client, Completion, Draft, Place, Queue, Worker, job, layer::Delivery};
use tokio::time::sleep;
use tower::{Layer, Service, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

/// Prints how long each run took, and how it ended.
#[derive(Clone, Debug)]
struct StopwatchLayer;

#[derive(Clone, Debug)]
struct Stopwatch<S> {
    inner: S,
}

impl<S> Layer<S> for StopwatchLayer {
    type Service = Stopwatch<S>;

    fn layer(&self, inner: S) -> Stopwatch<S> {
        Stopwatch { inner }
    }
}

impl<S> Service<Delivery> for Stopwatch<S>
where
    S: Service<Delivery, Response = Completion, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Completion;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Completion, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let name = delivery.name().to_owned();
        let start = Instant::now();
        let run = self.inner.call(delivery);
        Box::pin(async move {
            let result = run.await;
            let how = if result.is_ok() { "done" } else { "failed" };
            println!("{name}: {how} after {} ms", start.elapsed().as_millis());
            result
        })
    }
}

/// Prints a page.
#[job]
async fn print(page: u32) {
    sleep(Duration::from_millis(50)).await;
    println!("page {page}");
}

/// Takes longer than the worker allows; with a single attempt, so that it is a dead letter at once.
#[job(max_attempts = 1)]
async fn daydream() {
    sleep(Duration::from_secs(60)).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    // Of its own for each run, so that the dead letter is this run's.
    let queue = client.queue(format!("custom-layer-{}", std::process::id()))?;
    let name = queue.name().as_str();

    client.enqueue_many((1..=4).map(|page| Draft::of(PrintJob { page }).queue(name))).await?;
    queue.enqueue(DaydreamJob {}).await?;

    let worker = Worker::builder(&client)
        .queue(name)
        // Around all jobs; the first is the outermost, so it sees what the second does.
        .layer(StopwatchLayer)
        .layer(TimeoutLayer::new(Duration::from_secs(1)))
        // Around one: there is a single printer.
        .register_with::<PrintJob>(ConcurrencyLimitLayer::new(1))
        .register::<DaydreamJob>()
        .build()?;
    worker.run_until(all_ended(&queue)).await?;

    for letter in queue.list(Place::Dead, 0, 10).await? {
        if let Some(job) = queue.get(letter.id).await? {
            println!("{} is dead: {}", job.name.unwrap_or_default(), job.last_error.unwrap_or_default());
        }
        queue.remove(letter.id).await?;
    }
    client.close().await;
    Ok(())
}

async fn all_ended(queue: &Queue) {
    loop {
        // While the server can't be asked, nobody knows.
        if let Ok(counts) = queue.counts().await
            && counts.unfinished() == 0
        {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
