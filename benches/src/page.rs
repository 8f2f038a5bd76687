//! What is printed around the tables, so that the whole is a page of docs.

use std::fs;

use crate::{
    lab::Lab,
    settings::{Program, Settings},
};

/// The machine and the server.
pub(crate) async fn head(settings: &Settings) {
    let lab = Lab::start(settings).await;
    println!("Measured with {}, on a machine with {}.", lab.describe().await, machine());
    println!("Each figure is the median of {} runs, taken in turn.", settings.rounds);
    for (name, value) in &settings.config {
        println!("The server's configuration has `{name} {value}`.");
    }
    if settings.quick {
        println!("A smoke test: the figures mean nothing.");
    }
}

/// The title of a program's tables, and the command that makes them.
pub(crate) fn section(program: Program) {
    println!("\n## {program}\n\n`script/bench {program}`\n");
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    format!("{cores} cores of {}, {}", model.unwrap_or("an unknown kind"), std::env::consts::OS)
}
