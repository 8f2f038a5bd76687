//! A school's portal, whose workers are killed all the time: no enrolment is lost, and none happens twice.
//!
//! It reads `examples/data/enrollments.csv`, refuses the rows that can't be used, and enqueues a job for each other one.
//! Three worker processes carry them out against a SQLite file, while one after the other is killed with SIGKILL or frozen
//! for longer than its lease. At the end it holds the database against the file.
//!
//! ```text
//! cargo run -p emq-examples --example enrollment
//! cargo run -p emq-examples --example enrollment -- --seed 7       # the same kills again
//! EMQ_URL=redis://127.0.0.1:6379 cargo run -p emq-examples --example enrollment
//! ```
//!
//! Without `EMQ_URL` it starts a private server: the program in `EMQ_SERVER`, or else `valkey-server` or `redis-server` from
//! the `PATH`. It takes about half a minute, and ends with 1 if an enrolment was lost or doubled.
//!
//! Where to look: `job.rs` is the job; `school.rs` its effect, keyed on the job's id; `worker.rs` a worker; `portal.rs` the
//! run from beginning to end, with `csv_file.rs`, `supervisor.rs`, `progress.rs` and `report.rs`.

mod csv_file;
mod job;
mod portal;
mod progress;
mod report;
mod school;
mod supervisor;
mod worker;

use std::{env, path::Path, process::ExitCode};

use emq::{BoxError, shutdown_signal};

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = match args[..] {
        [] => portal(rand::random_range(0..10_000)).await,
        ["--seed", seed] => match seed.parse() {
            Ok(seed) => portal(seed).await,
            Err(_) => Err(format!("--seed takes a number, and not {seed:?}").into()),
        },
        ["worker", queue, database] => worker::run(queue, Path::new(database)).await.map(|()| true),
        _ => Err("usage: enrollment [--seed NUMBER]".into()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("enrollment: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the portal until it is done, or told to stop: then its workers and its server end with it.
async fn portal(seed: u64) -> Result<bool, BoxError> {
    tokio::select! {
        clean = portal::run(seed) => clean,
        () = shutdown_signal() => Err("stopped before the end".into()),
    }
}
