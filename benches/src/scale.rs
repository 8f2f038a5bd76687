//! `scale`: what a transition costs the server beside ten jobs, and beside a million; and what a job takes of its memory.

mod memory;
mod verbs;

use std::time::Duration;

use emq::{BoxError, Client, Draft, Lease, Queue};
use support::Raw;

use crate::{
    bare::Bare,
    jobs::{self, NoopJob, QUEUE, body},
    lab::Lab,
    number::{counted, shown},
    settings::Settings,
    table::Table,
};
use verbs::{Costs, JOBS, VERBS, costs};

/// How many jobs a claim takes while the ground is prepared.
const CLAIM: usize = 1_000;

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
        let bare = Bare::open(lab.port(), &prefix(), vec![b'x'; PAYLOAD]).await?;
        let (costs, bare) = costs(settings, &lab, &client, |_| Draft::of(job()), Some(bare)).await?;
        let (first, first_bare) = first.get_or_insert((costs, bare));
        table.row(cells(counted(depth), &costs, first));
        table.row(cells(format!("{}, bare", counted(depth)), &bare, first_bare));
        eprintln!("bench: depth {depth}: {costs:.2?} µs, by the bare commands {bare:.2?} µs");
    }
    println!(
        "µs inside of scripts, for each of {JOBS} jobs, with so many jobs waiting, in hand, scheduled and done, and \
         compared with the first row of its kind. Each is settled by a call of its own. What the bare commands take more \
         than in their first row is the server's own: it looks longer for a key among many, of which its caches hold few.\
         \n\n{table}"
    );

    let mut table = Table::new(&[&["lanes"], VERBS.as_slice()].concat());
    let mut first = None;
    for lanes in if settings.quick { vec![10, 1_000] } else { vec![10, JOBS as u64, 1_000, 100_000] } {
        let lab = Lab::start(settings).await;
        let client = lab.client().await?;
        let body = body(PAYLOAD);
        // In each lane there is always work, and a claim doesn't end it.
        jobs::fill(&client, (2 * lanes).max(2_000), |n| jobs::in_lane(n, lanes, &body)).await?;
        let (costs, _) = costs(settings, &lab, &client, |n| jobs::in_lane(n, lanes, &body), None).await?;
        table.row(cells(counted(lanes), &costs, first.get_or_insert(costs)));
        eprintln!("bench: {lanes} lanes: {costs:.2?} µs");
    }
    println!(
        "The same, with jobs in so many lanes. A claim of {JOBS} jobs serves so many lanes at most, and each that it serves \
         has its cost:\n\n{table}"
    );

    let mut table = Table::new(&["hash-max-listpack-value", "waiting", "active", "scheduled", "dead", "completed"]);
    for value in ["64", "1024"] {
        let mut settings = settings.clone();
        settings.config.push(("hash-max-listpack-value".into(), value.into()));
        let row = memory::measure(&settings).await?.map(shown);
        table.row([value.to_owned()].into_iter().chain(row));
    }
    println!("Bytes of the server's memory for a job, beside a payload of {PAYLOAD} bytes:\n\n{table}");
    Ok(())
}

fn job() -> NoopJob {
    NoopJob { body: body(PAYLOAD) }
}

/// What the keys of the queue begin with.
fn prefix() -> String {
    format!("emq:{{{QUEUE}}}:")
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
    let key = format!("{}done", prefix());
    for first in (0..count).step_by(CLAIM) {
        let mut args = vec!["ZADD".to_owned(), key.clone()];
        for n in first..count.min(first + CLAIM as u64) {
            args.extend([(4e12 + n as f64).to_string(), format!("JOB{n:011}")]);
        }
        raw.command(&args).await;
    }
}
