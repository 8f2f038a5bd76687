//! What a call answers, in terms of the model. Waits are compared elsewhere, since they depend on the real clock.

use emq::{Cancelled, Extended, JobState, Missed, Overlap, Reassigned, Removed, Revived, Settled, Updated};

use crate::verb::{Name, Rate, Right, Slot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Enqueued(Vec<Admitted>),
    Claimed {
        jobs: Vec<Handed>,
        more: bool,
        expired: usize,
    },
    Settled(Settled),
    Extended(Vec<Extended>),
    Promoted(u64),
    Reaped {
        recovered: Vec<Slot>,
        dead: Vec<Slot>,
        cancelled: Vec<Slot>,
    },
    /// What was reaped and promoted; whether a recurring job has a slot that is due, or one to come; and of how many kinds
    /// there is something to look after.
    Beat {
        reaped: Box<Self>,
        promoted: Box<Self>,
        slot: Option<bool>,
        kinds: usize,
    },
    Cancelled(Cancelled),
    Updated(Updated),
    Revived(Revived),
    Removed(Removed),
    Trimmed {
        forgotten: u64,
        dead: u64,
        more: bool,
    },
    Counts {
        pending: usize,
        active: usize,
        scheduled: usize,
        parked: usize,
        dead: usize,
        remembered: usize,
        completed: u64,
        failed: u64,
        paused: bool,
        lanes: usize,
    },
    Looked(Option<JobState>, Option<Box<Record>>),
    Listed(Vec<Slot>),
    Reassigned(Reassigned),
    /// How many jobs a lane was drained of, and how many wait there then: those that were parked behind them.
    Drained {
        deleted: usize,
        left: usize,
    },
    Lane(LaneRecord),
    /// How many there ever were.
    Partitions(u32),
    Limits {
        concurrency: Option<u32>,
        rate: Option<Rate>,
        held: bool,
    },
    /// Names, and how many jobs wait there.
    Lanes(Vec<(String, usize)>),
    /// How many jobs were deleted.
    Purged(usize),
    /// The same, with what was remembered; nothing if workers hold jobs.
    Obliterated(Option<usize>),
    /// What became of the jobs that were done.
    Completed(Vec<Settled>),
    /// The same, and what was claimed.
    Exchanged(Vec<Settled>, Box<Self>),
    /// What a script answers that is called by itself.
    Words(Vec<String>),
    Recurring(Vec<RepeatRecord>),
    /// Which recurring jobs have a slot that is due, and which.
    DueSlots(Vec<(Name, Option<i64>)>),
    /// Whether there was one.
    Marker(bool),
    /// Nothing, or nothing that anybody waited for.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    New,
    Duplicate(Slot),
    Replaced(Slot),
    Parked(Slot),
    Conflict(Slot),
}

/// A job as a worker gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    pub(crate) right: Right,
    pub(crate) name: Option<String>,
    pub(crate) payload: String,
    pub(crate) failures: u32,
    pub(crate) stalled: u32,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) header: Option<String>,
    pub(crate) lane: Option<String>,
}

/// A lane as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneRecord {
    pub(crate) waiting: Vec<Slot>,
    pub(crate) active: usize,
    pub(crate) concurrency: Option<u32>,
    pub(crate) weight: u32,
    pub(crate) rate: Option<Rate>,
    pub(crate) paused: bool,
    pub(crate) held: bool,
}

/// A job as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) state: JobState,
    pub(crate) name: Option<String>,
    pub(crate) payload: String,
    pub(crate) attempts: u64,
    pub(crate) failures: u32,
    pub(crate) stalled: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) worker: Option<usize>,
    pub(crate) priority: i32,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) key: Option<String>,
    pub(crate) header: Option<String>,
    pub(crate) lane: Option<String>,
    pub(crate) result: Option<String>,
}

/// A recurring job as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepeatRecord {
    pub(crate) name: String,
    pub(crate) schedule: String,
    pub(crate) next: Option<i64>,
    pub(crate) last: Option<i64>,
    pub(crate) last_job: Option<Slot>,
    pub(crate) missed: Missed,
    pub(crate) overlap: Overlap,
    pub(crate) priority: i32,
    pub(crate) lane: Option<String>,
    pub(crate) paused: bool,
}

impl Answer {
    /// Whether a claim says that it left something.
    pub(crate) fn is_more(&self) -> bool {
        match self {
            Self::Claimed { more, .. } => *more,
            Self::Exchanged(_, claimed) => claimed.is_more(),
            _ => false,
        }
    }

    /// Whether it says that nothing was written. A claim that found nothing may have turned the ring, a promotion may have
    /// set the marker, and a trim may have forgotten silent workers: those don't say.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Enqueued(jobs) => {
                jobs.iter().all(|job| matches!(job, Admitted::Duplicate(_) | Admitted::Conflict(_)))
            }
            // Of a cancellation it says only that the job is gone, and not since when.
            Self::Settled(settled) => ![Settled::Accepted, Settled::Cancelled].contains(settled),
            Self::Completed(settled) => !settled.contains(&Settled::Accepted),
            Self::Cancelled(cancelled) => *cancelled == Cancelled::Gone,
            Self::Updated(updated) => *updated != Updated::Updated,
            Self::Extended(leases) => !leases.contains(&Extended::Renewed),
            Self::Reaped { recovered, dead, cancelled } => {
                recovered.is_empty() && dead.is_empty() && cancelled.is_empty()
            }
            Self::Revived(revived) => *revived != Revived::Revived,
            Self::Removed(removed) => *removed != Removed::Removed,
            Self::Reassigned(reassigned) => *reassigned != Reassigned::Reassigned,
            Self::Drained { deleted: jobs, .. } | Self::Purged(jobs) => *jobs == 0,
            Self::Obliterated(jobs) => jobs.is_none(),
            Self::Words(words) => words.iter().all(|word| REFUSALS.contains(&word.trim_end())),
            Self::Counts { .. } | Self::Looked(..) | Self::Listed(_) | Self::Lane(_) | Self::Lanes(_) => true,
            Self::Recurring(_) | Self::DueSlots(_) | Self::Limits { .. } => true,
            Self::Marker(was_there) => !was_there,
            Self::Claimed { .. }
            | Self::Beat { .. }
            | Self::Partitions(_)
            | Self::Exchanged(..)
            | Self::Promoted(_)
            | Self::Trimmed { .. }
            | Self::None => false,
        }
    }
}

/// The words of scripts that have written nothing.
const REFUSALS: [&str; 4] = ["STALE", "GONE", "DONE", "TAKEN"];
