//! Two limits: one that we keep, and one that somebody else tells us of.
//!
//! The queue starts no more than 30 jobs a second, of which up to five at once. After the twelfth call the mail provider
//! says 429 once: the job goes back to its place, costs no attempt, and nothing starts until the provider's time is over.
//! The chart has a line per 100 ms, and a mark per job that started then.
//!
//! ```text
//! cargo run -p emq-examples --example rate_limit
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{
    env,
    error::Error,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use emq::{Client, JobContext, JobError, Rate, State, Worker, job};
use tokio::time::sleep;

const JOBS: u32 = 40;

/// How long the provider wants to be left alone.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// A provider of emails, which counts calls.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<Vec<(Instant, bool)>>>);

impl Provider {
    /// `Err` is 429 Too Many Requests, with the time after which to try again.
    fn send(&self, _to: u32) -> Result<(), Duration> {
        let mut calls = self.0.lock().unwrap();
        let is_too_often = calls.len() == 12;
        calls.push((Instant::now(), is_too_often));
        if is_too_often { Err(RETRY_AFTER) } else { Ok(()) }
    }
}

/// Sends an email.
#[job(queue = "mail")]
async fn send(to: u32, State(provider): State<Provider>, ctx: JobContext) -> Result<(), JobError> {
    provider.send(to).map_err(|retry_after| ctx.rate_limited(retry_after))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    // Of its own for each run, so that the jobs are this run's.
    let queue = client.queue(format!("rate-limit-{}", std::process::id()))?;
    let rate = Rate::per(30, Duration::from_secs(1)).burst(5);
    queue.set_rate(rate).await?;
    queue.enqueue_many((0..JOBS).map(|to| SendJob { to })).await?;
    println!("{JOBS} emails, {rate}");

    let provider = Provider::default();
    let name = queue.name().as_str();
    let worker = Worker::builder(&client).state(provider.clone()).register::<SendJob>().queue(name).build()?;
    let stats = worker
        .run_until(async {
            while queue.counts().await.is_ok_and(|counts| counts.unfinished() > 0) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await?;

    client.close().await;

    let calls = provider.0.lock().unwrap();
    let first = calls[0].0;
    let mut rows: Vec<String> = Vec::new();
    for (at, is_too_often) in calls.iter() {
        let row = (at.duration_since(first).as_millis() / 100) as usize;
        rows.resize(rows.len().max(row + 1), String::new());
        rows[row] += if *is_too_often { " 429" } else { "#" };
    }
    for (n, row) in rows.iter().enumerate() {
        println!("{:>5} ms {row}", n * 100);
    }
    println!("{} sent, {} told to wait, {} failed", stats.completed, stats.rate_limited, stats.failed());
    Ok(())
}
