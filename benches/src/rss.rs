//! `rss`: whether a worker stays as large as it is, over a million jobs that succeed, fail and panic.

use std::{fs, panic, time::Duration};

use emq::{BoxError, Keep};

use crate::{
    jobs::{self, FailJob, NoopJob, PanicJob, body},
    lab::Lab,
    number::{counted, shown},
    settings::Settings,
    table::Table,
};

/// So many jobs are enqueued at once, and waited for.
const CHUNK: u64 = 2_000;

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(1_000_000);
    // A million times the same.
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let table = grow(settings, jobs).await;
    panic::set_hook(before);
    println!("A process with a worker and a producer: of ten jobs one fails and one panics:\n\n{}", table?);
    Ok(())
}

async fn grow(settings: &Settings, jobs: u64) -> Result<Table, BoxError> {
    let lab = Lab::start(settings).await;
    let client = lab.client().await?;
    // Else the dead letters were as many as a default allows, and it is the worker that is looked at.
    let keep = Keep { count: 1_000, ..Keep::default() };
    let worker = jobs::worker(&client, 100).keep_dead(keep).build()?;
    let (handle, run) = (worker.handle(), tokio::spawn(worker.run()));
    let mut table = Table::new(&["jobs", "resident MiB", "server MiB"]);
    let (mut done, step) = (0, jobs.div_ceil(10).next_multiple_of(CHUNK));
    while done < jobs {
        let body = body(100);
        client.enqueue_many((0..CHUNK * 8 / 10).map(|_| NoopJob { body: body.clone() })).await?;
        client.enqueue_many((0..CHUNK / 10).map(|_| FailJob { body: body.clone() })).await?;
        client.enqueue_many((0..CHUNK / 10).map(|_| PanicJob { body: body.clone() })).await?;
        done += CHUNK;
        loop {
            let stats = handle.stats();
            if stats.completed + stats.dead >= done {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if done % step == 0 || done == CHUNK {
            let mib = |bytes: f64| shown(bytes / 1024.0 / 1024.0);
            table.row([counted(done), mib(resident()), mib(lab.memory().await)]);
            eprintln!("bench: {done} of {jobs} jobs");
        }
    }
    handle.shutdown();
    run.await??;
    Ok(table)
}

/// Bytes of memory that this process has; NaN where the system doesn't tell.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<f64>().ok()).map_or(f64::NAN, |kib| kib * 1024.0)
}
