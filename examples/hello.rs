//! The smallest whole program: it enqueues a job, and runs a worker until that is done.
//!
//! ```text
//! cargo run -p emq-examples --example hello
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine.

use std::{env, error::Error, sync::Arc};

use emq::{Client, State, Worker, job};
use tokio::sync::Notify;

/// Greets somebody.
#[job(queue = "hello", max_attempts = 5, timeout = "10s")]
async fn greet(name: String, State(greeted): State<Arc<Notify>>) {
    println!("Hello, {name}!");
    greeted.notify_one();
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;

    let ticket = client.enqueue(GreetJob { name: "Ada".into() }).await?;
    println!("enqueued {}", ticket.id());

    let greeted = Arc::new(Notify::new());
    let worker = Worker::builder(&client).state(Arc::clone(&greeted)).register::<GreetJob>().build()?;
    // A service runs for ever: `.run_until(emq::shutdown_signal())`.
    worker.run_until(greeted.notified()).await?;

    client.close().await;
    Ok(())
}
