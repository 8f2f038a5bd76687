//! The beat: what time does to a queue. Expired leases are reaped, due jobs promoted, recurring jobs enqueued, and what was
//! kept long enough is forgotten, whether the worker is busy or idle.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{line::Line, recurring::Recurrences};
use crate::{
    clock::later,
    store::{CallError, Keep, MAX_BATCH},
};

/// The shortest time between two sweeps: a job that can't be moved must not make a loop of them.
const SHORTEST: Duration = Duration::from_millis(5);

/// How many beats lie between two trims.
const BEATS_PER_TRIM: u32 = 10;

/// What the beat is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upkeep {
    pub(crate) beat: Duration,
    pub(crate) max_stalled: Option<u32>,
    pub(crate) keep: Keep,
}

/// Looks after one queue until the worker stops: on every beat, and in between when something is known to fall due.
/// Recurring jobs are in the first of a queue's partitions alone.
pub(super) async fn maintain(
    line: Arc<Line>,
    upkeep: Upkeep,
    mut recurrences: Option<Recurrences>,
    stop: CancellationToken,
) {
    let mut beats: u32 = 0;
    let mut next_beat = Instant::now();
    let mut earliest = next_beat;
    let mut failing = Failing::default();
    loop {
        let due = line.event().map_or(next_beat, |event| event.min(next_beat)).max(earliest);
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(due) => {}
            () = line.event_moved() => continue,
        }
        line.take_event();
        let is_beat = Instant::now() >= next_beat;
        let trim = is_beat && beats.is_multiple_of(BEATS_PER_TRIM);
        if is_beat {
            beats = beats.wrapping_add(1);
            next_beat = later(Instant::now(), upkeep.beat);
            // While others of the worker's queues have work without end, nobody waits for the marker of one that had none.
            if !line.is_parked() {
                line.heat();
            }
        }
        let sweep = sweep(&line, &upkeep, recurrences.as_mut(), trim, &mut failing);
        if stop.run_until_cancelled(Box::pin(sweep)).await.is_none() {
            return;
        }
        earliest = Instant::now() + SHORTEST;
    }
}

/// Which parts of a sweep failed the last time.
#[derive(Debug, Default)]
struct Failing {
    reap: bool,
    promote: bool,
    register: bool,
    fire: bool,
    trim: bool,
}

/// Reaps, promotes, fires, and, now and then, trims. One that fails doesn't keep the others from their work.
async fn sweep(
    line: &Line,
    upkeep: &Upkeep,
    recurrences: Option<&mut Recurrences>,
    trims: bool,
    failing: &mut Failing,
) {
    report(line, "reaping", &mut failing.reap, &reap(line, upkeep.max_stalled).await);
    report(line, "promoting", &mut failing.promote, &promote(line).await);
    if let Some(recurrences) = recurrences {
        if trims || !recurrences.are_registered() {
            let registered = recurrences.register(line).await;
            report(line, "registering recurring jobs", &mut failing.register, &registered);
        }
        report(line, "enqueuing recurring jobs", &mut failing.fire, &recurrences.fire(line).await);
    }
    if trims {
        report(line, "trimming", &mut failing.trim, &trim(line, upkeep.keep).await);
    }
}

/// Logs the first of several failures in a row: there may be one per beat for hours.
fn report(line: &Line, what: &str, was_failing: &mut bool, result: &Result<(), CallError>) {
    let queue = line.store.name();
    match (result, *was_failing) {
        (Err(error), false) => tracing::warn!(%error, %queue, "{what} failed; each beat tries again"),
        (Err(error), true) => tracing::debug!(%error, %queue, "{what} failed again"),
        (Ok(()), true) => tracing::info!(%queue, "{what} works again"),
        (Ok(()), false) => {}
    }
    *was_failing = result.is_err();
}

async fn reap(line: &Line, max_stalled: Option<u32>) -> Result<(), CallError> {
    loop {
        let reaped = line.store.reap(max_stalled, MAX_BATCH).await?;
        if !reaped.recovered.is_empty() {
            tracing::info!(queue = %line.store.name(), jobs = reaped.recovered.len(), "recovered jobs whose worker went silent");
            line.heat();
        }
        for id in &reaped.dead {
            tracing::warn!(queue = %line.store.name(), %id, "buried a job under which workers die");
        }
        if !reaped.more {
            return Ok(());
        }
    }
}

async fn promote(line: &Line) -> Result<(), CallError> {
    loop {
        let promoted = line.store.promote(MAX_BATCH).await?;
        if promoted.count > 0 {
            line.heat();
        }
        if promoted.next_due != Some(Duration::ZERO) {
            line.expect(promoted.next_due);
            return Ok(());
        }
    }
}

async fn trim(line: &Line, keep: Keep) -> Result<(), CallError> {
    while line.store.trim(keep, MAX_BATCH).await?.more {}
    Ok(())
}
