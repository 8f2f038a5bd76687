//! The program of the README: it enqueues a job, and runs a worker.
//!
//! ```text
//! cargo run -p emq-examples --example hello
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. Ctrl-C ends it.

use emq::{Client, JobContext, JobError, State, Worker, job, shutdown_signal};

#[derive(Clone)]
struct Greeting(&'static str);

/// Greets somebody.
#[job(queue = "greetings", max_attempts = 5, timeout = "30s")]
async fn greet(name: String, State(greeting): State<Greeting>, ctx: JobContext) -> Result<(), JobError> {
    println!("{}, {name}! (job {})", greeting.0, ctx.id());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    client.enqueue(GreetJob { name: "Ada".into() }).await?;

    let worker = Worker::builder(&client).state(Greeting("Hello")).register::<GreetJob>().build()?;
    worker.run_until(shutdown_signal()).await?;
    Ok(())
}
