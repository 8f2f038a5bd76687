//! A soak: jobs of all kinds, under workers, connections and a server that fail all the time.
//!
//! ```text
//! script/soak 5            # five minutes
//! script/soak 5 --seed 7   # the same strikes again
//! ```
//!
//! Producers in this process enqueue, directly and through a proxy that breaks connections. Three worker processes, which are
//! this program again, work behind another such proxy. A driver kills, freezes and cuts by chance; it flushes scripts, fills
//! the server's memory and makes a replica of it for a while. An operator cancels, removes and revives jobs, pauses queues and
//! lanes, and drains and purges a second queue. Each run is noted in a SQLite file. Then the driver stops, the queues are
//! drained, and everything is held against everything:
//!
//! * what was accepted is done, dead, removed, cancelled, expired or thrown away, and nothing waits;
//! * the effect of each job that is to succeed is there once; what is dead was meant to die, after just so many failures, or
//!   had expired before its first run; what runs of it have logged is there, each line once;
//! * no token ran twice, no effect was had under a token after a newer one had begun, no job ran again after it was cancelled,
//!   and whatever a ghost or a forgotten task tried to write under an old token was refused;
//! * a deduplication key kept others out for as long as it should, and no longer; a job that took over the work of others did
//!   what the last of them asked for;
//! * each slot of a recurring job has one job;
//! * no limit and no rate was exceeded by one, nothing began before its time, and nothing in a pause;
//! * each key of the server is one that may be left, with the time to live that it should have, and there are no more of them
//!   than can be explained: lanes have no slot, no job and no turn left;
//! * neither the server nor the oldest worker has grown with the jobs that have run.
//!
//! It ends with 1 if one of these doesn't hold, and prints the history of the job.
//!
//! The seed decides on the strikes and the jobs, and on nothing else: what the machine makes of them differs each time. So no
//! check is about how long something took, but for bounds that hold on every machine.
//!
//! Where to look: `run.rs` is a soak from beginning to end.
//!
//! | | |
//! |---|---|
//! | the plan, made by the seed | `strikes.rs`, `orders.rs` |
//! | the jobs | `jobs.rs`, `stay.rs`; their `lanes.rs`, `keys.rs` and `slots.rs` |
//! | what is enqueued | `producer.rs`, `meetings.rs`, `book.rs` |
//! | the worker processes | `worker.rs`, `workers.rs` |
//! | whoever disturbs them | `chaos.rs`, the driver; `operator.rs`; `pauses.rs`; `ghost.rs` |
//! | what is noted of the runs | `ledger.rs`, `event.rs` |
//! | the checks | `facts.rs`, what is known at the end; `checks/`, one file a promise; `census.rs`, `memory.rs` |
//! | what is printed | `watch.rs`, `report.rs` |

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
