//! `scale`: what a transition costs the server beside ten jobs, and beside a million; and what a job takes of its memory.

use std::time::Duration;

use emq::{BoxError, Client, Completion, Draft, Lease, Queue, Settled};
use futures_util::future::join_all;
use support::Raw;

use crate::{
    jobs::{self, NoopJob, QUEUE, body},
    lab::Lab,
    meter::Work,
    number::{counted, median, shown},
    settings::Settings,
    table::Table,
};

/// How many jobs a verb is measured with at once.
const JOBS: usize = 100;

/// How many jobs a claim takes while the ground is prepared.
const CLAIM: usize = 1_000;

/// The verbs, in the order in which they are measured.
const VERBS: [&str; 5] = ["enqueue", "claim", "settle", "promote", "reap"];

/// µs for a job, by verb.
type Costs = [f64; VERBS.len()];

const PAYLOAD: usize = 100;

/// Longer than any measurement.
const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let mut depths = vec![10, 1_000];
    if !settings.quick {
        depths.extend([100_000, 1_000_000]);
    }
    if settings.deep {
        depths.push(10_000_000);
    }
    let mut table = Table::new(&[&["depth"], VERBS.as_slice()].concat());
    let mut first = None;
    for depth in depths {
        let lab = Lab::start(settings).await;
        let client = lab.client().await?;
        deepen(&lab, &client, depth).await?;
        let costs = costs(settings, &lab, &client, |_| Draft::of(job())).await?;
        table.row(cells(counted(depth), &costs, first.get_or_insert(costs)));
        eprintln!("bench: depth {depth}: {costs:.2?} µs");
    }
    println!(
        "µs inside of scripts, for each of {JOBS} jobs, with so many jobs waiting, in hand, scheduled and done, and \
         compared with the first row:\n\n{table}"
    );

    let mut table = Table::new(&[&["lanes"], VERBS.as_slice()].concat());
    let mut first = None;
    for lanes in if settings.quick { vec![10, 1_000] } else { vec![10, 1_000, 100_000] } {
        let lab = Lab::start(settings).await;
        let client = lab.client().await?;
        let body = body(PAYLOAD);
        // In each lane there is always work, and a claim doesn't end it.
        jobs::fill(&client, (2 * lanes).max(2_000), |n| jobs::in_lane(n, lanes, &body)).await?;
        let costs = costs(settings, &lab, &client, |n| jobs::in_lane(n, lanes, &body)).await?;
        table.row(cells(counted(lanes), &costs, first.get_or_insert(costs)));
        eprintln!("bench: {lanes} lanes: {costs:.2?} µs");
    }
    println!("The same, with jobs in so many lanes:\n\n{table}");

    let mut table = Table::new(&["hash-max-listpack-value", "waiting", "active", "scheduled", "dead", "completed"]);
    for value in ["64", "1024"] {
        let mut settings = settings.clone();
        settings.config.push(("hash-max-listpack-value".into(), value.into()));
        let row = memory(&settings).await?.map(shown);
        table.row([value.to_owned()].into_iter().chain(row));
    }
    println!("Bytes of the server's memory for a job, beside a payload of {PAYLOAD} bytes:\n\n{table}");
    Ok(())
}

fn job() -> NoopJob {
    NoopJob { body: body(PAYLOAD) }
}

fn cells(label: String, costs: &Costs, first: &Costs) -> impl Iterator<Item = String> {
    let compared = |(cost, first): (&f64, &f64)| format!("{} (×{})", shown(*cost), shown(cost / first));
    std::iter::once(label).chain(costs.iter().zip(first).map(compared))
}

/// Puts so many jobs into each place.
async fn deepen(lab: &Lab, client: &Client, depth: u64) -> Result<(), BoxError> {
    jobs::fill(client, depth, |_| job()).await?;
    hold(&client.queue(QUEUE)?, depth).await?;
    jobs::fill(client, depth, |_| job()).await?;
    jobs::fill(client, depth, |_| Draft::of(job()).delay(HOUR)).await?;
    forget_later(&mut lab.raw().await, depth).await;
    Ok(())
}

/// Claims so many jobs for an hour.
async fn hold(queue: &Queue, count: u64) -> Result<Vec<Lease>, BoxError> {
    let mut claimer = queue.claimer("holder").lease(HOUR);
    let mut leases = Vec::new();
    while (leases.len() as u64) < count {
        let most = CLAIM.min((count - leases.len() as u64) as usize);
        leases.extend(claimer.claim(most).await?.jobs.iter().map(|job| job.lease));
    }
    Ok(leases)
}

/// Puts ids among the finished jobs, as docs/keys.md has it: to process as many would take minutes.
async fn forget_later(raw: &mut Raw, count: u64) {
    let key = format!("emq:{{{QUEUE}}}:done");
    for first in (0..count).step_by(CLAIM) {
        let mut args = vec!["ZADD".to_owned(), key.clone()];
        for n in first..count.min(first + CLAIM as u64) {
            args.extend([(4e12 + n as f64).to_string(), format!("JOB{n:011}")]);
        }
        raw.command(&args).await;
    }
}

/// Counts the time inside of scripts between two looks.
struct Clock {
    raw: Raw,
    before: Work,
}

impl Clock {
    async fn start(lab: &Lab) -> Self {
        let mut raw = lab.raw().await;
        let before = Work::read(&mut raw).await;
        Self { raw, before }
    }

    /// µs for each of [`JOBS`] since the last look.
    async fn lap(&mut self) -> f64 {
        let now = Work::read(&mut self.raw).await;
        let before = std::mem::replace(&mut self.before, now);
        self.before.since(&before).script_us() as f64 / JOBS as f64
    }
}

/// What each of [`VERBS`] costs for a job, in µs: the median of many times. It leaves the queue as it was.
async fn costs(
    settings: &Settings,
    lab: &Lab,
    client: &Client,
    draft: impl Fn(u64) -> Draft<NoopJob>,
) -> Result<Costs, BoxError> {
    let queue = client.queue(QUEUE)?;
    let mut next = 0;
    let mut drafts = || {
        next += JOBS as u64;
        (next - JOBS as u64..next).map(&draft).collect::<Vec<_>>()
    };
    let (mut claimer, mut forgetful) =
        (queue.claimer("measured").lease(HOUR), queue.claimer("forgetful").lease(Duration::from_millis(1)));
    let mut laps: [Vec<f64>; VERBS.len()] = Default::default();
    for _ in 0..settings.jobs(25).max(2) {
        let mut clock = Clock::start(lab).await;
        client.enqueue_many(drafts()).await?;
        laps[0].push(clock.lap().await);

        let claimed = claimer.claim(JOBS).await?.jobs;
        laps[1].push(clock.lap().await);

        accepted(join_all(claimed.iter().map(|job| queue.complete(&job.lease, Completion::empty()))).await)?;
        laps[2].push(clock.lap().await);

        client.enqueue_many(drafts()).await?;
        let claimed = claimer.claim(JOBS).await?.jobs;
        accepted(join_all(claimed.iter().map(|job| queue.snooze(&job.lease, Duration::from_millis(1)))).await)?;
        tokio::time::sleep(Duration::from_millis(5)).await;
        clock.lap().await;
        if queue.promote().await?.count != JOBS as u64 {
            return Err("not all that was snoozed is promoted".into());
        }
        laps[3].push(clock.lap().await);

        forgetful.claim(JOBS).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
        clock.lap().await;
        if queue.reap(None).await?.recovered.len() != JOBS {
            return Err("not all that was forgotten is reaped".into());
        }
        laps[4].push(clock.lap().await);

        let claimed = claimer.claim(JOBS).await?.jobs;
        accepted(join_all(claimed.iter().map(|job| queue.complete(&job.lease, Completion::empty()))).await)?;
    }
    Ok(laps.map(median))
}

fn accepted(settled: Vec<Result<Settled, emq::CallError>>) -> Result<(), BoxError> {
    for settled in settled {
        if settled? != Settled::Accepted {
            return Err("a settle was refused".into());
        }
    }
    Ok(())
}

/// Bytes for a job that waits, is in hand, is scheduled, is dead, and is done.
async fn memory(settings: &Settings) -> Result<[f64; 5], BoxError> {
    let count = settings.jobs(50_000);
    let lab = Lab::start(settings).await;
    let client = lab.client().await?;
    let queue = client.queue(QUEUE)?;
    let fill = async || jobs::fill(&client, count, |_| job()).await;
    // The scripts are there then, and the queue's own keys.
    client.enqueue(job()).await?;
    complete(&queue, &hold(&queue, 1).await?).await?;

    let mut before = lab.memory().await;
    let mut grown = async || {
        let now = lab.memory().await;
        (now - std::mem::replace(&mut before, now)) / count as f64
    };
    fill().await?;
    let waiting = grown().await - PAYLOAD as f64;
    let leases = hold(&queue, count).await?;
    let active = waiting + grown().await;
    for leases in leases.chunks(CLAIM) {
        accepted(join_all(leases.iter().map(|lease| queue.snooze(lease, HOUR))).await)?;
    }
    let scheduled = active + grown().await;

    fill().await?;
    let leases = hold(&queue, count).await?;
    grown().await;
    for leases in leases.chunks(CLAIM) {
        accepted(join_all(leases.iter().map(|lease| queue.bury(lease, "no such student"))).await)?;
    }
    let dead = active + grown().await;

    // From a moment without them to one when they are done, so that nothing else is counted.
    grown().await;
    fill().await?;
    complete(&queue, &hold(&queue, count).await?).await?;
    let completed = grown().await;
    Ok([waiting, active, scheduled, dead, completed])
}

async fn complete(queue: &Queue, leases: &[Lease]) -> Result<(), BoxError> {
    for leases in leases.chunks(CLAIM) {
        accepted(join_all(leases.iter().map(|lease| queue.complete(lease, Completion::empty()))).await)?;
    }
    Ok(())
}
