//! The beat: what time does to a queue. Expired leases are reaped, due jobs promoted, recurring jobs enqueued, and what was
//! kept long enough is forgotten, whether the worker is busy or idle.
//!
//! A queue where nothing is costs it one command.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{line::Line, recurring::Recurrences};
use crate::{
    clock::later,
    store::{Beat, CallError, Keep, MAX_BATCH, Promoted, Reaped},
};

/// The shortest time between two sweeps: a job that can't be moved must not make a loop of them.
const SHORTEST: Duration = Duration::from_millis(5);

/// How many beats lie between two trims.
const BEATS_PER_TRIM: u32 = 30;

/// How many beats lie between two looks whether the server still has the recurring jobs that are declared.
const BEATS_PER_REGISTRATION: u32 = 10;

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
    recurrences: Option<Recurrences>,
    stop: CancellationToken,
) {
    let mut sweeper =
        Sweeper { line: Arc::clone(&line), upkeep, recurrences, is_quiet: false, failing: Failing::default() };
    let mut beats: u32 = 0;
    let mut next_beat = Instant::now();
    let mut earliest = next_beat;
    loop {
        let due = line.event().map_or(next_beat, |event| event.min(next_beat)).max(earliest);
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(due) => {}
            () = line.event_moved() => continue,
        }
        line.take_event();
        let is_beat = Instant::now() >= next_beat;
        let every = |n| is_beat && beats.is_multiple_of(n);
        let (trims, registers) = (every(BEATS_PER_TRIM), every(BEATS_PER_REGISTRATION));
        if is_beat {
            beats = beats.wrapping_add(1);
            next_beat = later(Instant::now(), upkeep.beat);
            // While others of the worker's queues have work without end, nobody waits for the marker of one that had none.
            if !line.is_parked() {
                line.heat();
            }
        }
        if stop.run_until_cancelled(Box::pin(sweeper.sweep(trims, registers))).await.is_none() {
            return;
        }
        earliest = Instant::now() + SHORTEST;
    }
}

/// What one queue's sweeps know of each other.
struct Sweeper {
    line: Arc<Line>,
    upkeep: Upkeep,
    recurrences: Option<Recurrences>,
    /// When it was last looked at, nothing was there.
    is_quiet: bool,
    failing: Failing,
}

/// Which parts of a sweep failed the last time.
#[derive(Debug, Default)]
struct Failing {
    beat: bool,
    reap: bool,
    promote: bool,
    register: bool,
    fire: bool,
    trim: bool,
}

impl Sweeper {
    /// Reaps, promotes, fires, and, now and then, trims. One that fails doesn't keep the others from their work.
    async fn sweep(&mut self, trims: bool, registers: bool) {
        let Self { line, upkeep, recurrences, failing, .. } = self;
        let mut fires = false;
        if !self.is_quiet || !line.store.is_quiet().await.unwrap_or_default() {
            let beat = line.store.beat(upkeep.max_stalled).await;
            self.is_quiet = beat.as_ref().is_ok_and(|beat| beat.is_quiet);
            report(line, "the beat", &mut failing.beat, &beat.as_ref().map(drop));
            if let Ok(Beat { reaped, promoted, next_slot, .. }) = beat {
                report(line, "reaping", &mut failing.reap, &go_on_reaping(line, upkeep.max_stalled, reaped).await);
                report(line, "promoting", &mut failing.promote, &go_on_promoting(line, promoted).await);
                line.expect(next_slot.filter(|wait| !wait.is_zero()));
                fires = next_slot == Some(Duration::ZERO);
            }
        }
        if let Some(recurrences) = recurrences {
            if registers || !recurrences.are_registered() {
                let registered = recurrences.register(line).await;
                fires |= recurrences.are_declared();
                report(line, "registering recurring jobs", &mut failing.register, &registered);
            }
            if fires {
                report(line, "enqueuing recurring jobs", &mut failing.fire, &recurrences.fire(line).await);
            }
        }
        if trims {
            report(line, "trimming", &mut failing.trim, &trim(line, upkeep.keep).await);
        }
    }
}

/// Logs the first of several failures in a row: there may be one per beat for hours.
fn report<E: std::fmt::Display>(line: &Line, what: &str, was_failing: &mut bool, result: &Result<(), E>) {
    let queue = line.store.name();
    match (result, *was_failing) {
        (Err(error), false) => tracing::warn!(%error, %queue, "{what} failed; each beat tries again"),
        (Err(error), true) => tracing::debug!(%error, %queue, "{what} failed again"),
        (Ok(()), true) => tracing::info!(%queue, "{what} works again"),
        (Ok(()), false) => {}
    }
    *was_failing = result.is_err();
}

/// Goes on from what a beat has reaped.
async fn go_on_reaping(line: &Line, max_stalled: Option<u32>, mut first: Option<Reaped>) -> Result<(), CallError> {
    loop {
        let reaped = match first.take() {
            Some(reaped) => reaped,
            None => line.store.reap(max_stalled, MAX_BATCH).await?,
        };
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

/// Goes on from what a beat has promoted.
async fn go_on_promoting(line: &Line, mut first: Option<Promoted>) -> Result<(), CallError> {
    loop {
        let promoted = match first.take() {
            Some(promoted) => promoted,
            None => line.store.promote(MAX_BATCH).await?,
        };
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
