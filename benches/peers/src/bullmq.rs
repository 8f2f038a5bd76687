//! bullmq-official: BullMQ in Rust.

use bullmq::{
    BulkJob, Job, JobOptions, Queue, QueueOptions, Worker, WorkerOptions,
    options::RedisConnectionOptions,
    types::RemoveOnFinish,
    worker::{CancellationToken, WorkerEvent},
};
use serde_json::{Value, json};

use crate::{Order, Result, body, ready};

const QUEUE: &str = "bench";

const BULK: usize = 1_000;

pub(crate) async fn run(order: &Order) -> Result<()> {
    let connection = RedisConnectionOptions::new().url(order.url.as_str());
    let options = JobOptions { remove_on_complete: Some(RemoveOnFinish::Bool(true)), ..JobOptions::default() };
    let options = QueueOptions::new().connection(connection.clone()).default_job_options(options);
    let queue = Queue::with_options(QUEUE, options).await?;
    match order.task.as_str() {
        "enqueue-one" => {
            let clock = ready().await?;
            for _ in 0..order.jobs {
                queue.add("noop", json!({ "body": body() })).await?;
            }
            clock.done();
        }
        "enqueue-many" => {
            let clock = ready().await?;
            add(&queue, order.jobs).await?;
            clock.done();
        }
        _ => {
            add(&queue, order.jobs).await?;
            let options = WorkerOptions::new().connection(connection).concurrency(order.concurrency);
            let options = options.remove_on_complete(RemoveOnFinish::Bool(true)).manual_start();
            let worker = Worker::with_options(QUEUE, noop, options).await?;
            let clock = ready().await?;
            worker.run().await?;
            let mut done = 0;
            while done < order.jobs {
                match worker.next_event().await.ok_or("the worker ended before its jobs")? {
                    WorkerEvent::Completed { .. } => done += 1,
                    WorkerEvent::Failed { error, .. } | WorkerEvent::Error(error) => return Err(error.into()),
                    _ => {}
                }
            }
            clock.done();
        }
    }
    Ok(())
}

async fn add(queue: &Queue, jobs: usize) -> Result<()> {
    let mut left = jobs;
    while left > 0 {
        let count = left.min(BULK);
        queue.add_bulk((0..count).map(|_| BulkJob::new("noop", json!({ "body": body() }))).collect()).await?;
        left -= count;
    }
    Ok(())
}

async fn noop(_: Job, _: CancellationToken) -> std::result::Result<Value, bullmq::Error> {
    Ok(Value::Null)
}
