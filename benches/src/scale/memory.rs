//! What a job takes of the server's memory.

use emq::{BoxError, Completion, Lease, Queue};
use futures_util::future::join_all;

use super::{CLAIM, HOUR, PAYLOAD, hold, job, verbs::accepted};
use crate::{
    jobs::{self, QUEUE},
    lab::Lab,
    settings::Settings,
};

/// Bytes for a job that waits, is in hand, is scheduled, is dead, and is done.
pub(super) async fn measure(settings: &Settings) -> Result<[f64; 5], BoxError> {
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

    // From a moment without them to one when they are done. The server's table of all keys has grown at the first time, and
    // stays as it is: that is of the jobs that were there, and nothing of what is left of them.
    let mut completed = f64::NAN;
    for _ in 0..2 {
        grown().await;
        fill().await?;
        complete(&queue, &hold(&queue, count).await?).await?;
        completed = grown().await;
    }
    Ok([waiting, active, scheduled, dead, completed])
}

async fn complete(queue: &Queue, leases: &[Lease]) -> Result<(), BoxError> {
    for leases in leases.chunks(CLAIM) {
        accepted(join_all(leases.iter().map(|lease| queue.complete(lease, Completion::empty()))).await)?;
    }
    Ok(())
}
