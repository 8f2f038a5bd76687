//! `partitions`: one queue over the nodes of a Cluster, beside one that isn't divided.
//!
//! On a machine with fewer cores than nodes the jobs per second say little: what each node's core has to do for a job says
//! how many jobs so many cores could carry.

use std::time::Duration;

use emq::{BoxError, Worker};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    jobs::{self, NoopJob, QUEUE, body},
    nodes::{Nodes, Spent},
    number::{median, shown},
    settings::Settings,
    table::Table,
};

/// How often is looked whether all is done.
const LOOK: Duration = Duration::from_millis(2);

/// Where the queue is, and into how many parts it is divided: nodes of a Cluster, or 0 for a server by itself.
const PLACES: [(&str, usize, u16); 6] = [
    ("one server, not divided", 0, 1),
    ("one server, 16 partitions", 0, 16),
    ("Cluster of 1, not divided", 1, 1),
    ("Cluster of 1, 16 partitions", 1, 16),
    ("Cluster of 2, 16 partitions", 2, 16),
    ("Cluster of 3, 16 partitions", 3, 16),
];

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(60_000);
    let mut spent: Vec<(Vec<Spent>, Vec<Spent>)> = PLACES.iter().map(|_| Default::default()).collect();
    for round in 1..=settings.rounds {
        for ((place, nodes, partitions), spent) in PLACES.iter().zip(&mut spent) {
            let (enqueued, processed) = fill_and_work(settings, *nodes, *partitions, jobs).await?;
            let rate = |spent: &Spent| shown(jobs as f64 / spent.took.as_secs_f64());
            eprintln!("bench: round {round}, {place}: {}/s, {}/s", rate(&enqueued), rate(&processed));
            spent.0.push(enqueued);
            spent.1.push(processed);
        }
    }
    let (enqueued, processed) = (spent.iter().map(|spent| &spent.0), spent.iter().map(|spent| &spent.1));
    println!("`enqueue_many`, 10 000 jobs at a time:\n\n{}", table(jobs, enqueued));
    println!("One worker, 1000 at once:\n\n{}", table(jobs, processed));

    let mut table = Table::new(&["idle worker", "connections", "of them waiting", "commands/s", "server CPU ms/s"]);
    for (place, nodes, partitions) in PLACES {
        let (connections, waiting, spent) = idle(settings, nodes, partitions).await?;
        let seconds = spent.took.as_secs_f64();
        table.row([
            place.to_owned(),
            connections.to_string(),
            waiting.to_string(),
            shown(spent.commands() as f64 / seconds),
            shown(spent.server_cpu().as_secs_f64() * 1e3 / seconds),
        ]);
    }
    println!("A worker that has nothing to do, with its client:\n\n{table}");
    Ok(())
}

fn table<'a>(jobs: u64, places: impl Iterator<Item = &'a Vec<Spent>>) -> Table {
    let mut table = Table::new(&[
        "",
        "jobs/s",
        "server µs/job",
        "busiest node µs/job",
        "jobs/s that the nodes' cores could carry",
        "client µs/job",
        "calls/job",
    ]);
    for ((place, ..), spent) in PLACES.iter().zip(places) {
        let of = |what: &dyn Fn(&Spent) -> f64| median(spent.iter().map(what));
        let us = |time: Duration| time.as_secs_f64() * 1e6 / jobs as f64;
        let busiest = of(&|spent| us(spent.busiest_cpu()));
        table.row([
            (*place).to_owned(),
            shown(of(&|spent| jobs as f64 / spent.took.as_secs_f64())),
            shown(of(&|spent| us(spent.server_cpu()))),
            shown(busiest),
            shown(1e6 / busiest),
            shown(of(&|spent| us(spent.client_cpu))),
            shown(of(&|spent| spent.calls() as f64 / jobs as f64)),
        ]);
    }
    table
}

async fn start(settings: &Settings, nodes: usize) -> Nodes {
    match nodes {
        0 => Nodes::alone(settings).await,
        count => Nodes::cluster(settings, count).await,
    }
}

/// What it takes to enqueue jobs, and to work them off.
async fn fill_and_work(
    settings: &Settings,
    nodes: usize,
    partitions: u16,
    jobs: u64,
) -> Result<(Spent, Spent), BoxError> {
    let nodes = start(settings, nodes).await;
    let client = nodes.client(partitions).await?;
    let body = body(100);
    let meter = nodes.meter().await;
    jobs::fill(&client, jobs, |_| NoopJob { body: body.clone() }).await?;
    let enqueued = meter.stop().await;

    let worker = jobs::worker(&client, 1_000).build()?;
    let handle = worker.handle();
    let meter = nodes.meter().await;
    let run = tokio::spawn(Worker::run(worker));
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while handle.stats().completed < jobs {
        look.tick().await;
        if run.is_finished() {
            return Err("the worker ended before its jobs".into());
        }
    }
    let processed = meter.stop().await;
    handle.shutdown();
    run.await??;
    let left = client.partitioned(QUEUE)?.counts().await?.unfinished();
    if left == 0 { Ok((enqueued, processed)) } else { Err(format!("{left} jobs are left").into()) }
}

/// How many connections an idle worker has, how many of them wait, and what it costs.
async fn idle(settings: &Settings, nodes: usize, partitions: u16) -> Result<(usize, usize, Spent), BoxError> {
    let nodes = start(settings, nodes).await;
    let client = nodes.client(partitions).await?;
    let worker = jobs::worker(&client, 32).build()?;
    let (handle, run) = (worker.handle(), tokio::spawn(worker.run()));
    // Until it has looked once and sleeps.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (connections, waiting) = nodes.connections().await;
    let meter = nodes.meter().await;
    tokio::time::sleep(Duration::from_secs(if settings.quick { 2 } else { 20 })).await;
    let spent = meter.stop().await;
    handle.shutdown();
    run.await??;
    Ok((connections, waiting, spent))
}
