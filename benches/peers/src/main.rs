//! Other job queues at the same work; `benches/src/peers.rs` says what they are called with, and what they print.
//!
//! Each is set as was found to be fastest for it, with jobs that do nothing and a payload of a hundred bytes.

mod apalis;
mod bullmq;

use std::{
    error::Error,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How often is looked whether all is done.
const LOOK: Duration = Duration::from_millis(2);

/// What to do.
struct Order {
    task: String,
    url: String,
    jobs: usize,
    concurrency: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, task, url, jobs, concurrency] = args.as_slice() else {
        return Err("usage: emq-peers PEER TASK URL JOBS CONCURRENCY".into());
    };
    let order = Order { task: task.clone(), url: url.clone(), jobs: jobs.parse()?, concurrency: concurrency.parse()? };
    match peer.as_str() {
        "apalis" => apalis::run(&order, false).await,
        "apalis-locked" => apalis::run(&order, true).await,
        "bullmq-rust" => bullmq::run(&order).await,
        _ => Err(format!("there is no peer {peer:?}").into()),
    }
}

/// A payload of a hundred bytes as JSON, like that of emq's job.
fn body() -> String {
    "x".repeat(89)
}

/// Says that all is prepared, and waits until it may begin.
async fn ready() -> Result<Clock> {
    println!("ready");
    BufReader::new(stdin()).read_line(&mut String::new()).await?;
    Ok(Clock { begun: Instant::now(), cpu: cpu() })
}

/// The time and the CPU of what was asked for.
struct Clock {
    begun: Instant,
    cpu: Duration,
}

impl Clock {
    fn done(self) {
        println!("done {} {}", self.begun.elapsed().as_micros(), (cpu() - self.cpu).as_micros());
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
