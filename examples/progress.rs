//! A hand on a running job: it tells how far it is, its caller waits for the result, and another one is cancelled.
//!
//! ```text
//! cargo run -p emq-examples --example progress
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{env, error::Error, time::Duration};

use emq::{Client, Event, JobContext, WaitError, Worker, job};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

/// How far an import is.
#[derive(Debug, Serialize, Deserialize)]
struct Rows {
    done: u64,
    of: u64,
}

/// What an import leaves behind.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    file: String,
    rows: u64,
}

#[job]
async fn import(file: String, rows: u64, ctx: JobContext) -> Result<Summary, emq::JobError> {
    ctx.log(format!("{file} has {rows} rows")).await?;
    for done in 0..rows {
        if done % 100 == 0 {
            // An import isn't to fail because nobody could be told of it.
            let _ = ctx.progress(&Rows { done, of: rows }).await;
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(Summary { file, rows })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    // Of its own for each run, so that the jobs are this run's.
    let queue = client.queue(format!("progress-{}", std::process::id()))?;
    let worker = Worker::builder(&client).register::<ImportJob>().queue(queue.name().as_str()).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());

    let mut events = queue.events().await?;
    let ticket = queue.enqueue(ImportJob { file: "students.csv".into(), rows: 500 }).await?;
    let shown = ticket.id();
    while let Some(event) = events.next().await {
        match event {
            Event::Progress { id, progress } if id == shown => {
                let Rows { done, of } = serde_json::from_value(progress)?;
                println!("{done} of {of} rows");
            }
            Event::Completed { id } if id == shown => break,
            _ => {}
        }
    }
    let summary: Summary = ticket.wait().await?;
    println!("{} is in: {} rows", summary.file, summary.rows);

    let endless = queue.enqueue(ImportJob { file: "everything.csv".into(), rows: u64::MAX }).await?;
    while queue.logs(endless.id()).await?.is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    println!("the log says: {}", queue.logs(endless.id()).await?[0]);
    println!("cancel: {:?}", endless.cancel().await?);
    match endless.wait_for(Duration::from_secs(10)).await {
        Err(WaitError::Cancelled { .. }) => println!("and it is gone"),
        other => println!("{other:?}"),
    }

    handle.shutdown();
    let stats = running.await??;
    println!("{} completed, {} cancelled", stats.completed, stats.cancelled);
    client.close().await;
    Ok(())
}
