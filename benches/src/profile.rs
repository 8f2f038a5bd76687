//! `profile`: where the server's time goes, by command.
//!
//! The server counts the time inside of each command, and that of a script with its commands. What is left of a script's
//! is Lua and the way in and out of it; what is left of the CPU is sockets, parsing, replying and the event loop.

use emq::BoxError;

use crate::{
    enqueue, limit,
    meter::{Sample, is_call},
    number::{median, shown},
    process,
    settings::Settings,
    table::Table,
    trial::{Measured, in_turn},
};

/// Commands that take less than this share of the time are left out.
const SMALL: f64 = 0.01;

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(50_000);
    let trials = [
        process::one(settings, 100, 50_000),
        limit::cycle(settings, 64, jobs),
        enqueue::bulk(settings, jobs),
        limit::enqueue(settings, 256, 100, jobs),
    ];
    for measured in in_turn(settings, &trials).await {
        println!("{}:\n\n{}", measured.label, broken_down(&measured));
    }
    Ok(())
}

/// One sample's time by what it went into, in µs, and how often: each for a job.
struct Part {
    name: String,
    times: f64,
    us: f64,
}

fn broken_down(measured: &Measured) -> Table {
    let mut table = Table::new(&["", "times/job", "µs/job", "share"]);
    let parts: Vec<Vec<Part>> = measured.samples.iter().map(parts).collect();
    let total = measured.median(Sample::server_us);
    // The parts of the first sample; a command that isn't in all of them is none that matters.
    for part in parts.first().into_iter().flatten() {
        let same = || parts.iter().filter_map(|parts| parts.iter().find(|other| other.name == part.name));
        let (times, us) = (median(same().map(|part| part.times)), median(same().map(|part| part.us)));
        if us / total >= SMALL {
            let times = if times.is_nan() { String::new() } else { shown(times) };
            table.row([part.name.clone(), times, shown(us), format!("{:.0} %", us / total * 100.0)]);
        }
    }
    table.row(["all".to_owned(), String::new(), shown(total), "100 %".to_owned()]);
    table
}

/// The commands, the longest first, and what isn't inside of any.
fn parts(sample: &Sample) -> Vec<Part> {
    let inner = sample.work.commands.iter().filter(|(name, _)| !is_call(name));
    let mut parts: Vec<Part> = inner
        .map(|(name, (calls, usec))| Part {
            name: name.to_uppercase(),
            times: sample.each(*calls as f64),
            us: sample.each(*usec as f64),
        })
        .collect();
    parts.sort_unstable_by(|one, other| other.us.total_cmp(&one.us));
    let commands: f64 = parts.iter().map(|part| part.us).sum();
    let scripts = sample.each(sample.work.script_us() as f64);
    let (lua, rest) = ("Lua, and in and out of it", "sockets, parsing, event loop");
    let calls = sample.each(sample.work.calls() as f64);
    parts.push(Part { name: lua.into(), times: calls, us: (scripts - commands).max(0.0) });
    parts.push(Part { name: rest.into(), times: f64::NAN, us: (sample.server_us() - scripts).max(0.0) });
    parts
}
