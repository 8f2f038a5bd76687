//! `process`: from a backlog to jobs that are done, with handlers that do nothing.

use std::{iter::repeat_n, time::Duration};

use emq::{BoxError, Client, Completion, Settled, Stats, Worker};
use futures_util::future::{join_all, try_join_all};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    jobs::{self, AnswerJob, FalterJob, NoopJob, QUEUE, body},
    lab::Lab,
    limit,
    meter::Sample,
    settings::Settings,
    trial::{Trial, compared, in_turn},
};

/// How many jobs a worker is given at this concurrency: what takes seconds.
pub(crate) const CONCURRENCIES: [(usize, u64); 5] =
    [(1, 10_000), (16, 50_000), (100, 50_000), (1_000, 100_000), (10_000, 100_000)];

/// How often is looked whether all is done.
const LOOK: Duration = Duration::from_millis(2);

/// What the jobs do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Noop,
    Answer,
    Falter,
    /// As `Noop`, spread over so many lanes.
    Lanes(u64),
}

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(50_000);
    let mut trials = vec![
        limit::cycle(settings, 64, settings.jobs(100_000)),
        limit::cycle(settings, 1, jobs),
        limit::one_by_one(settings, settings.jobs(10_000)),
    ];
    for (concurrency, jobs) in CONCURRENCIES {
        trials.push(one(settings, concurrency, jobs));
    }
    println!("One worker, by its concurrency:\n\n{}", compared(&in_turn(settings, &trials).await));

    let worked = |label: &str, load, workers, concurrency| {
        Trial::new(label, move || work(settings, load, workers, concurrency, jobs))
    };
    let trials = [
        worked("100 at once", Load::Noop, 1, 100),
        worked("4 workers, 25 at once each", Load::Noop, 4, 25),
        worked("4 workers, 1000 at once each", Load::Noop, 4, 1_000),
        // Its jobs are runs: a job that fails once is run twice, and promoted in between.
        worked("a fifth fails once (runs)", Load::Falter, 1, 100),
        worked("in 10 lanes", Load::Lanes(10), 1, 100),
        worked("in 10 000 lanes", Load::Lanes(10_000), 1, 100),
        worked("results of 100 bytes kept", Load::Answer, 1, 100),
        Trial::new("bare verbs, claims of 1", move || verbs(settings, 1, settings.jobs(10_000))),
        Trial::new("bare verbs, claims of 100", move || verbs(settings, 100, jobs)),
        Trial::new("bare verbs, claims of 1000", move || verbs(settings, 1_000, jobs)),
    ];
    println!("Other loads, and other ways:\n\n{}", compared(&in_turn(settings, &trials).await));
    Ok(())
}

/// One worker, and jobs that do nothing.
pub(crate) fn one(settings: &Settings, concurrency: usize, jobs: u64) -> Trial<'_> {
    let jobs = settings.jobs(jobs);
    Trial::new(format!("emq, {concurrency} at once"), move || work(settings, Load::Noop, 1, concurrency, jobs))
}

/// Works a backlog off by workers with a client each.
pub(crate) async fn work(
    settings: &Settings,
    load: Load,
    workers: usize,
    concurrency: usize,
    jobs: u64,
) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let clients = try_join_all(repeat_n((), workers).map(|()| lab.client())).await?;
    let runs = fill(&clients[0], load, jobs).await?;
    let workers: Vec<Worker> =
        clients.iter().map(|client| jobs::worker(client, concurrency).build()).collect::<Result<_, _>>()?;
    let handles: Vec<_> = workers.iter().map(Worker::handle).collect();
    let meter = lab.meter().await;
    let running: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.run())).collect();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while handles.iter().map(|handle| ended(&handle.stats())).sum::<u64>() < runs {
        look.tick().await;
        if running.iter().any(tokio::task::JoinHandle::is_finished) {
            return Err("a worker ended before its jobs".into());
        }
    }
    let sample = meter.stop(runs).await;
    handles.iter().for_each(emq::WorkerHandle::shutdown);
    for ended in join_all(running).await {
        ended??;
    }
    let left = clients[0].queue(QUEUE)?.counts().await?.unfinished();
    if left == 0 { Ok(sample) } else { Err(format!("{left} jobs are left").into()) }
}

/// Enqueues jobs, and answers how many runs they take.
async fn fill(client: &Client, load: Load, jobs: u64) -> Result<u64, BoxError> {
    let body = body(100);
    match load {
        Load::Noop => jobs::fill(client, jobs, |_| NoopJob { body: body.clone() }).await?,
        Load::Answer => jobs::fill(client, jobs, |_| AnswerJob { body: body.clone() }).await?,
        Load::Lanes(lanes) => jobs::fill(client, jobs, |n| jobs::in_lane(n, lanes, &body)).await?,
        Load::Falter => {
            let falters = |n| n % 5 == 0;
            let end = |n| if falters(n) { "!" } else { "." };
            jobs::fill(client, jobs, |n| FalterJob { body: format!("{}{}", &body[1..], end(n)) }).await?;
            return Ok(jobs + (0..jobs).filter(|n| falters(*n)).count() as u64);
        }
    }
    Ok(jobs)
}

fn ended(stats: &Stats) -> u64 {
    stats.completed + stats.retried + stats.dead
}

/// Claims and completes by the queue's own methods: a claim, and its jobs completed at once.
async fn verbs(settings: &Settings, per_claim: usize, jobs: u64) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let client = lab.client().await?;
    fill(&client, Load::Noop, jobs).await?;
    let queue = client.queue(QUEUE)?;
    let mut claimer = queue.claimer("bench");
    let meter = lab.meter().await;
    let mut done = 0;
    while done < jobs {
        let batch = claimer.claim(per_claim).await?;
        let settles = batch.jobs.iter().map(|job| queue.complete(&job.lease, Completion::empty()));
        for settled in join_all(settles).await {
            if settled? != Settled::Accepted {
                return Err("a completion was refused".into());
            }
            done += 1;
        }
    }
    Ok(meter.stop(jobs).await)
}
