//! Measures emq, beside what its server could do with the bare commands, and beside other job queues.
//!
//! ```text
//! script/bench                       # all but `partitions`, `rss`, `peers` and `chart`
//! script/bench process enqueue       # these two
//! script/bench process --quick       # whether it works at all; the figures mean nothing
//! script/bench scale --deep          # also with ten million jobs
//! script/bench process --rounds 5 --config "hash-max-listpack-value 512"
//! ```
//!
//! Every run has a private server of its own. What is compared is run in turn, A B C A B C, so that a machine that is
//! slower for a while is slower for all; the median of each is printed, as a Markdown table on stdout. Progress is on
//! stderr. `others` says how many cores other programs took meanwhile: a run with more than a few hundredths there is
//! worth little.
//!
//! Where to look: `lab.rs` starts a server, `nodes.rs` a Cluster, and `meter.rs` reads what a run cost it; `trial.rs` runs trials in turn and
//! prints them; a file per program; `bare.rs` has the bare commands, with their scripts in `bare/`, and `pipe.rs` their raw socket;
//! `number.rs`, `table.rs` and `chart.rs` have no I/O. The other queues are in `peers/`, a workspace of its own.

mod bare;
mod chart;
mod enqueue;
mod idle;
mod jobs;
mod lab;
mod latency;
mod limit;
mod live;
mod meter;
mod nodes;
mod number;
mod page;
mod partitions;
mod peers;
mod pipe;
mod process;
mod profile;
mod rss;
mod scale;
mod settings;
mod table;
mod trial;

use std::process::ExitCode;

use emq::BoxError;

use settings::{Program, Settings};

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Settings::read(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("bench: {error}\n{}", settings::USAGE);
            return ExitCode::FAILURE;
        }
    };
    // In a task, as the handler of a web server is: what awaits in `main` has to wake another thread with each step.
    let run = tokio::spawn(async move { run(&settings).await });
    match run.await.unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(settings: &Settings) -> Result<(), BoxError> {
    page::head(settings).await;
    for program in &settings.programs {
        page::section(*program);
        match program {
            Program::Limit => limit::run(settings).await?,
            Program::Enqueue => enqueue::run(settings).await?,
            Program::Process => process::run(settings).await?,
            Program::Profile => profile::run(settings).await?,
            Program::Latency => latency::run(settings).await?,
            Program::Scale => scale::run(settings).await?,
            Program::Idle => idle::run(settings).await?,
            Program::Partitions => partitions::run(settings).await?,
            Program::Rss => rss::run(settings).await?,
            Program::Peers => peers::run(settings).await?,
            Program::Chart => chart::run(settings).await?,
        }
    }
    Ok(())
}
