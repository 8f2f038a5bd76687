//! What each verb costs the server, by emq and by the bare commands.

use std::time::Duration;

use emq::{BoxError, Claimed, Claimer, Client, Completion, Draft, Queue, Settled};
use futures_util::future::join_all;
use support::Raw;
use tokio::time::sleep;

use super::HOUR;
use crate::{
    bare::Bare,
    jobs::{NoopJob, QUEUE},
    lab::Lab,
    meter::Work,
    number::median,
    settings::Settings,
};

/// How many jobs a verb is measured with at once.
pub(super) const JOBS: usize = 100;

/// The verbs, in the order in which they are measured.
pub(super) const VERBS: [&str; 5] = ["enqueue", "claim", "settle", "promote", "reap"];

/// µs for a job, by verb.
pub(super) type Costs = [f64; VERBS.len()];

/// What each of [`VERBS`] costs for a job, and what it costs by the bare commands: the medians of many laps, in turn.
pub(super) async fn costs<F: Fn(u64) -> Draft<NoopJob>>(
    settings: &Settings,
    lab: &Lab,
    client: &Client,
    draft: F,
    mut bare: Option<Bare>,
) -> Result<(Costs, Costs), BoxError> {
    let mut hands = Hands::new(client, draft)?;
    let mut clock = Clock::start(lab).await;
    let (mut laps, mut bare_laps) = (Vec::new(), Vec::new());
    for _ in 0..settings.jobs(25 * settings.rounds as u64).max(2) {
        laps.push(hands.lap(&mut clock).await?);
        if let Some(bare) = &mut bare {
            bare_laps.push(hands.bare_lap(&mut clock, bare).await?);
        }
    }
    Ok((medians(&laps), medians(&bare_laps)))
}

fn medians(laps: &[Costs]) -> Costs {
    std::array::from_fn(|verb| median(laps.iter().map(|costs| costs[verb])))
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

/// Who carries the verbs out. A lap leaves the queue as it was.
struct Hands<F> {
    client: Client,
    queue: Queue,
    claimer: Claimer,
    /// Its leases run out at once.
    forgetful: Claimer,
    draft: F,
    drafted: u64,
}

impl<F: Fn(u64) -> Draft<NoopJob>> Hands<F> {
    fn new(client: &Client, draft: F) -> Result<Self, BoxError> {
        let queue = client.queue(QUEUE)?;
        Ok(Self {
            client: client.clone(),
            claimer: queue.claimer("measured").lease(HOUR),
            forgetful: queue.claimer("forgetful").lease(Duration::from_millis(1)),
            queue,
            draft,
            drafted: 0,
        })
    }

    async fn lap(&mut self, clock: &mut Clock) -> Result<Costs, BoxError> {
        let mut costs = Costs::default();
        clock.lap().await;
        self.enqueue().await?;
        costs[0] = clock.lap().await;
        let claimed = self.claim().await?;
        costs[1] = clock.lap().await;
        self.settle(&claimed).await?;
        costs[2] = clock.lap().await;

        self.put_off().await?;
        clock.lap().await;
        all(self.queue.promote().await?.count)?;
        costs[3] = clock.lap().await;

        self.forget().await?;
        clock.lap().await;
        all(self.queue.reap(None).await?.recovered.len() as u64)?;
        costs[4] = clock.lap().await;
        self.tidy_up().await?;
        Ok(costs)
    }

    async fn bare_lap(&mut self, clock: &mut Clock, bare: &mut Bare) -> Result<Costs, BoxError> {
        let mut costs = Costs::default();
        clock.lap().await;
        bare.enqueue(JOBS).await?;
        costs[0] = clock.lap().await;
        let claimed = bare.claim(JOBS).await?;
        costs[1] = clock.lap().await;
        all(claimed.len() as u64)?;
        bare.settle(&claimed).await?;
        costs[2] = clock.lap().await;

        self.put_off().await?;
        clock.lap().await;
        all(bare.promote(JOBS).await?)?;
        costs[3] = clock.lap().await;

        self.forget().await?;
        clock.lap().await;
        all(bare.reap(JOBS).await?)?;
        costs[4] = clock.lap().await;
        self.tidy_up().await?;
        Ok(costs)
    }

    async fn enqueue(&mut self) -> Result<(), BoxError> {
        let first = self.drafted;
        self.drafted += JOBS as u64;
        self.client.enqueue_many((first..self.drafted).map(&self.draft)).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<Vec<Claimed>, BoxError> {
        let claimed = self.claimer.claim(JOBS).await?.jobs;
        all(claimed.len() as u64)?;
        Ok(claimed)
    }

    async fn settle(&self, claimed: &[Claimed]) -> Result<(), BoxError> {
        accepted(join_all(claimed.iter().map(|job| self.queue.complete(&job.lease, Completion::empty()))).await)
    }

    /// Puts jobs on the schedule that are due when this returns.
    async fn put_off(&mut self) -> Result<(), BoxError> {
        self.enqueue().await?;
        let claimed = self.claim().await?;
        accepted(join_all(claimed.iter().map(|job| self.queue.snooze(&job.lease, Duration::from_millis(1)))).await)?;
        sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    /// Claims jobs whose lease has run out when this returns.
    async fn forget(&mut self) -> Result<(), BoxError> {
        self.forgetful.claim(JOBS).await?;
        sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    async fn tidy_up(&mut self) -> Result<(), BoxError> {
        let claimed = self.claim().await?;
        self.settle(&claimed).await
    }
}

fn all(jobs: u64) -> Result<(), BoxError> {
    if jobs == JOBS as u64 { Ok(()) } else { Err(format!("{jobs} jobs were moved, and not {JOBS}").into()) }
}

pub(super) fn accepted(settled: Vec<Result<Settled, emq::CallError>>) -> Result<(), BoxError> {
    for settled in settled {
        if settled? != Settled::Accepted {
            return Err("a settle was refused".into());
        }
    }
    Ok(())
}
