//! The beat: what time does to a queue. Expired leases are reaped, due jobs promoted, and what was kept long enough is
//! forgotten, whether the worker is busy or idle.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    store::{CallError, Keep, MAX_BATCH},
    worker::Line,
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
pub(crate) async fn maintain(line: Arc<Line>, upkeep: Upkeep, stop: CancellationToken) {
    let mut beats: u32 = 0;
    let mut next_beat = Instant::now();
    let mut earliest = next_beat;
    loop {
        let due = || line.event().map_or(next_beat, |event| event.min(next_beat)).max(earliest);
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep_until(due()) => {}
            () = line.event_moved() => continue,
        }
        line.take_event();
        let is_beat = Instant::now() >= next_beat;
        let trim = is_beat && beats.is_multiple_of(BEATS_PER_TRIM);
        if is_beat {
            beats = beats.wrapping_add(1);
            next_beat = Instant::now() + upkeep.beat;
        }
        let swept = stop.run_until_cancelled(sweep(&line, &upkeep, trim)).await;
        if let Some(Err(error)) = swept {
            tracing::warn!(%error, queue = %line.store.name(), "looking after the queue failed; the next beat tries again");
        }
        earliest = Instant::now() + SHORTEST;
    }
}

/// Reaps, then promotes, then, now and then, trims.
async fn sweep(line: &Line, upkeep: &Upkeep, trim: bool) -> Result<(), CallError> {
    loop {
        let reaped = line.store.reap(upkeep.max_stalled, MAX_BATCH).await?;
        if !reaped.recovered.is_empty() {
            tracing::info!(queue = %line.store.name(), jobs = reaped.recovered.len(), "recovered jobs whose worker went silent");
            line.heat();
        }
        for id in &reaped.dead {
            tracing::warn!(queue = %line.store.name(), %id, "buried a job under which workers die");
        }
        if !reaped.more {
            break;
        }
    }
    loop {
        let promoted = line.store.promote(MAX_BATCH).await?;
        if promoted.count > 0 {
            line.heat();
        }
        if promoted.next_due != Some(Duration::ZERO) {
            line.expect(promoted.next_due);
            break;
        }
    }
    while trim && line.store.trim(upkeep.keep, MAX_BATCH).await?.more {}
    Ok(())
}
