//! `enqueue`: one at a time, many at once, and many in one call.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use emq::{BoxError, Client};
use fred::{
    interfaces::ClientLike as _,
    types::{Builder, config::Config},
};
use tokio::task::JoinSet;

use crate::{
    jobs::{NoopJob, body},
    lab::Lab,
    limit,
    meter::Sample,
    number::shown,
    pipe::Pipe,
    settings::Settings,
    trial::{Trial, compared, in_turn},
};

const PAYLOADS: [(usize, &str); 3] = [(100, "100 bytes"), (1_024, "1 KiB"), (100 * 1_024, "100 KiB")];

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(10_000);
    let trials = [ping(settings, jobs), ping_by_fred(settings, jobs), one(settings, jobs)];
    let measured = in_turn(settings, &trials).await;
    println!("One after the other, beside the round trip of a PING:\n\n{}", compared(&measured));
    if let [_, ping, one] = measured.as_slice() {
        let round_trips = ping.median(Sample::per_second) / one.median(Sample::per_second);
        println!(
            "So an enqueue takes as long as {} round trips of a PING by the same client library.\n",
            shown(round_trips)
        );
    }
    for (payload, name) in PAYLOADS {
        // 100 KiB of 50 000 jobs would be 5 GB.
        let jobs = settings.jobs(if payload > 10_000 { 2_000 } else { 50_000 });
        let trials = [
            // Of a call that carries 100 KiB a thousand times, the server would hold the text twice.
            limit::enqueue(settings, if payload > 10_000 { 16 } else { 256 }, payload, jobs),
            limit::enqueue(settings, 1, payload, jobs),
            Trial::new("100 at once", move || at_once(settings, 100, payload, jobs)),
            Trial::new("1000 at once", move || at_once(settings, 1_000, payload, jobs)),
            Trial::new("`enqueue_many`, 100", move || many(settings, 100, payload, jobs)),
            Trial::new("`enqueue_many`, 1000", move || many(settings, 1_000, payload, jobs)),
        ];
        println!("Payloads of {name}:\n\n{}", compared(&in_turn(settings, &trials).await));
    }
    Ok(())
}

/// emq, one at a time.
pub(crate) fn one(settings: &Settings, jobs: u64) -> Trial<'_> {
    Trial::new("emq, one at a time, awaited", move || one_by_one(settings, 100, jobs))
}

/// emq, a thousand in one call.
pub(crate) fn bulk(settings: &Settings, jobs: u64) -> Trial<'_> {
    Trial::new("emq, `enqueue_many`, 1000", move || many(settings, 1_000, 100, jobs))
}

/// The least that anything awaited takes.
fn ping(settings: &Settings, count: u64) -> Trial<'_> {
    Trial::new("PING, raw socket", move || async move {
        let lab = Lab::start(settings).await;
        let mut pipe = Pipe::open(lab.port()).await?;
        let meter = lab.meter().await;
        for _ in 0..count {
            pipe.call(&["PING"]).await?;
        }
        Ok(meter.stop(count).await)
    })
}

/// The least that anything awaited takes through the client library that emq has.
fn ping_by_fred(settings: &Settings, count: u64) -> Trial<'_> {
    Trial::new("PING, by fred", move || async move {
        let lab = Lab::start(settings).await;
        let client = Builder::from_config(Config::from_url(&lab.url())?).build()?;
        let connection = client.init().await?;
        let meter = lab.meter().await;
        for _ in 0..count {
            client.ping::<()>(None).await?;
        }
        let sample = meter.stop(count).await;
        connection.abort();
        Ok(sample)
    })
}

/// Jobs of this payload, of which one was enqueued, so that all that is made once has been made.
async fn warm(lab: &Lab, payload: usize) -> Result<(Client, NoopJob), BoxError> {
    let (client, job) = (lab.client().await?, NoopJob { body: body(payload) });
    client.enqueue(job.clone()).await?;
    Ok((client, job))
}

async fn one_by_one(settings: &Settings, payload: usize, jobs: u64) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let (client, job) = warm(&lab, payload).await?;
    let meter = lab.meter().await;
    for _ in 0..jobs {
        client.enqueue(job.clone()).await?;
    }
    Ok(meter.stop(jobs).await)
}

/// So many tasks that enqueue one after the other, as the requests of a web server would.
async fn at_once(settings: &Settings, tasks: u64, payload: usize, jobs: u64) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let (client, job) = warm(&lab, payload).await?;
    let left = Arc::new(AtomicU64::new(jobs));
    let meter = lab.meter().await;
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (client, job, left) = (client.clone(), job.clone(), Arc::clone(&left));
        running.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                client.enqueue(job.clone()).await?;
            }
            Ok::<_, BoxError>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(meter.stop(jobs).await)
}

async fn many(settings: &Settings, per_call: usize, payload: usize, jobs: u64) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let (client, job) = warm(&lab, payload).await?;
    let calls = jobs.div_ceil(per_call as u64);
    let meter = lab.meter().await;
    for _ in 0..calls {
        client.enqueue_many(std::iter::repeat_n(job.clone(), per_call)).await?;
    }
    Ok(meter.stop(calls * per_call as u64).await)
}
