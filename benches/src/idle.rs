//! `idle`: what a worker without work costs.

use std::time::Duration;

use emq::{BoxError, Client};
use support::Proxy;

use crate::{jobs, lab::Lab, meter::Sample, number::shown, settings::Settings, table::Table};

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let mut table = Table::new(&["queues", "requests/s", "commands/s", "server CPU ms/s", "worker CPU ms/s"]);
    for queues in [1, 4] {
        let (requests, sample) = idle(settings, queues).await?;
        let seconds = sample.took.as_secs_f64();
        table.row([
            queues.to_string(),
            shown(requests as f64 / seconds),
            shown(sample.work.all() as f64 / seconds),
            shown(sample.work.cpu.as_secs_f64() * 1e3 / seconds),
            shown(sample.client_cpu.as_secs_f64() * 1e3 / seconds),
        ]);
    }
    println!("A worker that has nothing to do (commands: those inside of scripts among them):\n\n{table}");
    Ok(())
}

/// How many requests an idle worker sends, and what it costs.
async fn idle(settings: &Settings, queues: usize) -> Result<(u64, Sample), BoxError> {
    let lab = Lab::start(settings).await;
    let proxy = Proxy::start(lab.port());
    let client = Client::connect(proxy.url()).await?;
    let mut builder = jobs::worker(&client, 32);
    for n in 0..queues {
        builder = builder.queue(format!("idle-{n}"));
    }
    let worker = builder.build()?;
    let (handle, run) = (worker.handle(), tokio::spawn(worker.run()));
    // Until it has looked once and sleeps.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = proxy.requests();
    let meter = lab.meter().await;
    tokio::time::sleep(Duration::from_secs(if settings.quick { 2 } else { 20 })).await;
    let sample = meter.stop(1).await;
    let requests = proxy.requests() - before;
    handle.shutdown();
    run.await??;
    Ok((requests, sample))
}
