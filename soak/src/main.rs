//! A soak: jobs of all kinds, under workers, connections and a server that fail all the time.
//!
//! ```text
//! script/soak 5            # five minutes
//! script/soak 5 --seed 7   # the same strikes again
//! ```
//!
//! Producers in this process enqueue, directly and through a proxy that breaks connections. Three worker processes, which are
//! this program again, work behind another such proxy. A driver kills, freezes and cuts by chance; it flushes scripts, fills
//! the server's memory and makes a replica of it for a while; and it pauses the queue, revives and removes jobs. Each run
//! is noted in a SQLite file. Then the driver stops, the queue is drained, and everything is held against everything:
//!
//! * what was accepted is done, dead or removed, and nothing waits;
//! * the effect of each job that is to succeed is there once; what is dead was meant to die, after just so many failures, or
//!   had expired before its first run;
//! * no token ran twice, no effect was had under a token after a newer one had begun, and whatever a ghost tried to write
//!   under an old token was refused;
//! * two jobs with one deduplication key were never there at once, and lanes have no slot, no job and no turn left;
//! * each key of the server is one that may be left, and there are no more of them than can be explained;
//! * neither the server nor the oldest worker has grown with the jobs that have run.
//!
//! It ends with 1 if one of these doesn't hold, and prints the history of the job.
//!
//! The seed decides on the strikes and the jobs, and on nothing else: what the machine makes of them differs each time.
//!
//! Where to look: `run.rs` is a soak from beginning to end; `strikes.rs` and `orders.rs` are the plan, which the seed makes;
//! `jobs.rs` the jobs; `producer.rs` and `book.rs` what is enqueued; `worker.rs` and `workers.rs` the worker processes;
//! `chaos.rs` the driver, `operator.rs` what an operator does, and `ghost.rs` the ghost; `ledger.rs` the SQLite file;
//! `verdict.rs`, `census.rs` and `memory.rs` the checks; `watch.rs` and `report.rs` what is printed.

mod book;
mod census;
mod chaos;
mod checks;
mod event;
mod facts;
mod ghost;
mod jobs;
mod keys;
mod lanes;
mod ledger;
mod meetings;
mod memory;
mod operator;
mod orders;
mod pauses;
mod producer;
mod report;
mod run;
mod slots;
mod stay;
mod strikes;
mod watch;
mod worker;
mod workers;

use std::{env, process::ExitCode, time::Duration};

use emq::{BoxError, shutdown_signal};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_env_filter(logged()).with_writer(std::io::stderr).init();
    if let Some(ended) = workers::be_one().await {
        return ended;
    }
    let ended = match arguments() {
        Ok((time, seed)) => tokio::select! {
            clean = run::run(time, seed) => clean,
            () = shutdown_signal() => Err("stopped before the end".into()),
        },
        Err(error) => Err(error),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What is logged: by default errors, but for those that are meant: some jobs block their threads.
fn logged() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,emq::layer::lease::renewals=off"))
}

/// Reads how long to soak, and the seed.
fn arguments() -> Result<(Duration, u64), BoxError> {
    let (mut minutes, mut seed) = (5.0, rand::random_range(0..100_000));
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--seed" {
            seed = args.next().ok_or("--seed takes a number")?.parse()?;
        } else {
            minutes = arg.parse().map_err(|_| "usage: soak [MINUTES] [--seed NUMBER]")?;
        }
    }
    Ok((Duration::try_from_secs_f64(minutes * 60.0)?, seed))
}
