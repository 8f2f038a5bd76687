//! A worker's loop written by hand: each transition of a queue is a method, and the rest is up to you.
//!
//! Of three emails one is sent at once, one at the second try, and one is buried.
//!
//! ```text
//! cargo run -p emq-examples --example own_loop
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{env, error::Error, time::Duration};

use emq::{CallError, Claimed, Client, Completion, Extended, Job, JobError, JobErrorKind, Queue, Settled};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(10);

/// An email to be sent.
#[derive(Debug, Serialize, Deserialize, Job)]
struct SendEmail {
    to: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    // Of its own for each run, so that the jobs are this run's.
    let queue = client.queue(format!("own-loop-{}", std::process::id()))?;
    for to in ["ada@example.org", "greylisted@example.org", "nobody"] {
        queue.enqueue(SendEmail { to: to.into() }).await?;
    }

    let mut claimer = queue.claimer("own-loop").lease(LEASE);
    while queue.counts().await?.unfinished() > 0 {
        // Back to work with what a dead worker held, and with what is due by now.
        queue.reap(Some(3)).await?;
        queue.promote().await?;
        let batch = claimer.claim(1).await?;
        for job in &batch.jobs {
            match run(&queue, job).await? {
                Some(settled) if settled.is_settled() => {}
                // Another worker has it by now, and nothing was written.
                other => println!("{}: too late: {other:?}", job.lease.id()),
            }
        }
        if batch.jobs.is_empty() {
            sleep(batch.next_event.unwrap_or(LEASE).min(Duration::from_secs(1))).await;
        }
    }
    claimer.leave().await?;
    client.close().await;
    Ok(())
}

/// Runs a job and settles it; `None` if the lease was lost meanwhile.
async fn run(queue: &Queue, job: &Claimed) -> Result<Option<Settled>, CallError> {
    let result = tokio::select! {
        result = send(job) => result,
        lost = keep_lease(queue, job) => return lost.map(|()| None),
    };
    settle(queue, job, result).await.map(Some)
}

/// Renews the lease until it is lost.
async fn keep_lease(queue: &Queue, job: &Claimed) -> Result<(), CallError> {
    loop {
        sleep(LEASE / 3).await;
        if queue.extend(&[job.lease], LEASE).await?.contains(&Extended::Lost) {
            return Ok(());
        }
    }
}

/// The work itself.
async fn send(job: &Claimed) -> Result<(), JobError> {
    let SendEmail { to } = job.decode()?;
    println!("{to}: try {}", job.failures + 1);
    sleep(Duration::from_millis(20)).await;
    if !to.contains('@') {
        return Err(JobError::permanent("that is no address"));
    }
    if to.starts_with("greylisted") && job.failures == 0 {
        return Err(JobError::retry_after(Duration::from_millis(200)).because("451 try again later"));
    }
    Ok(())
}

/// Tells the server what became of a job.
async fn settle(queue: &Queue, job: &Claimed, result: Result<(), JobError>) -> Result<Settled, CallError> {
    let lease = &job.lease;
    let Err(error) = result else {
        println!("  sent");
        return queue.complete(lease, Completion::empty()).await;
    };
    let text = error.to_string();
    match error.kind() {
        JobErrorKind::Permanent => {
            println!("  buried: {text}");
            queue.bury(lease, &text).await
        }
        JobErrorKind::RetryAfter(delay) => {
            println!("  again in {delay:?}: {text}");
            queue.retry(lease, delay, &text).await
        }
        _ => queue.retry(lease, Duration::from_secs(1), &text).await,
    }
}
