//! What a sequence is made of: calls of the queue, and what the world does in between.

mod repeat;
mod shown;

pub(crate) use self::repeat::{FAR, Name, Repeat, Run, Template, Turn};

/// Half an hour in ms. All waits and leaps of the clock are multiples of it, so that the ms that a real server needs for
/// a sequence never decide whether something is due.
pub(crate) const HALF_HOUR: i64 = 30 * 60 * 1_000;

pub(crate) const HOUR: i64 = 2 * HALF_HOUR;

pub(crate) const WORKERS: usize = 3;

/// The worker that comes after these, which claims by exchanges only.
pub(crate) const EXCHANGER: usize = WORKERS;

/// How many lines of a log are kept.
pub(crate) const LOG_LINES: usize = 2;

/// One of a few lanes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lane(pub(crate) u8);

impl Lane {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..3).map(Self)
    }
}

/// How many jobs may start in some time; the period is in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) max: u32,
    pub(crate) period: i64,
    pub(crate) burst: u32,
}

impl Rate {
    /// How far apart jobs are that come evenly.
    pub(crate) fn gap(&self) -> i64 {
        self.period / i64::from(self.max)
    }

    /// How much earlier than evenly a job may come.
    pub(crate) fn slack(&self) -> i64 {
        i64::from(self.burst - 1) * self.gap()
    }
}

/// What an operator sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    Concurrency(Option<u32>),
    /// Of a lane only.
    Weight(u32),
    Rate(Option<Rate>),
}

/// One of a few jobs: the same ids come again and again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(crate) usize);

impl Slot {
    /// The numbers of the ids: their texts differ in a digit, a capital, a small letter and in length, so that an order
    /// of bytes that isn't the order of numbers shows. All were minted long ago, but for the last one, which has a time to
    /// come.
    pub(crate) const NUMBERS: [u64; 8] = [1, 9, 10, 35, 36, 61, 62, IN_2084];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::NUMBERS.len()).map(Self)
    }

    /// Whether its id says that it is older than any age.
    pub(crate) fn was_minted_long_ago(self) -> bool {
        Self::NUMBERS[self.0] < IN_2084
    }
}

/// The number of an id from 60 years after the first ones.
const IN_2084: u64 = (60 * 365 * 24 * HOUR as u64) << 22;

/// A deduplication key: that of a caller, or of a slot of a recurring job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Of(u8),
    Slot(Name, i64),
}

/// The right that a caller claims to have: a job and a fencing token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) slot: Slot,
    pub(crate) token: u64,
}

/// When a job is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    /// In ms from the server's now.
    After(i64),
    /// In ms from the time at which the call is made.
    At(i64),
}

impl When {
    /// From now.
    pub(crate) fn wait(self) -> i64 {
        match self {
            Self::Now => 0,
            Self::After(wait) | Self::At(wait) => wait,
        }
    }
}

/// How a job holds its key, and what becomes of it if another does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) held: Held,
    pub(crate) meeting: Meeting,
    pub(crate) then_once: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Held {
    #[default]
    UntilEnd,
    UntilStart,
    For(i64),
    AfterEnd(i64),
}

/// What a holder does that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Meeting {
    #[default]
    Keeps,
    Replaced,
    Debounced {
        latest: i64,
    },
}

/// A job to enqueue.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) slot: Slot,
    pub(crate) payload: u8,
    pub(crate) key: Option<Key>,
    pub(crate) rules: Rules,
    pub(crate) when: When,
    pub(crate) priority: i32,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) header: bool,
    pub(crate) lane: Option<Lane>,
    /// In ms from the server's now.
    pub(crate) expires: Option<i64>,
}

impl Spec {
    /// One of which nothing is said but its payload.
    pub(crate) fn plain(slot: Slot, payload: u8) -> Self {
        Self {
            slot,
            payload,
            key: None,
            rules: Rules::default(),
            when: When::Now,
            priority: 0,
            max_attempts: None,
            header: false,
            lane: None,
            expires: None,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::plain(self.slot, self.payload)
    }
}

/// How a claimed job is settled, short of being completed. Texts of failures are made from their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settling {
    Retry { delay: i64, error: u8 },
    Bury { error: u8 },
    Snooze { delay: i64 },
    Hold { delay: i64 },
    Release,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    Pending,
    Active,
    Scheduled,
    Parked,
    Dead,
    Finished,
}

/// A job that is done, as its worker tells it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) right: Right,
    pub(crate) retention: i64,
    pub(crate) result: Option<u8>,
}

/// One step of a sequence.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    Enqueue(Spec),
    EnqueueMany(Vec<Spec>),
    /// With `lost` the caller doesn't wait for the answer, and its next claim asks for the same again.
    Claim {
        worker: usize,
        max: usize,
        lease: i64,
        lost: bool,
    },
    /// The worker says goodbye, and a new one takes its place.
    Leave {
        worker: usize,
    },
    Complete(Done),
    /// As a worker that has no room to claim.
    CompleteMany(Vec<Done>),
    /// What is done and the next claim in one call, of the worker that does nothing else.
    Exchange {
        done: Vec<Done>,
        max: usize,
        lease: i64,
        lost: bool,
    },
    /// How far the run is.
    Progress {
        right: Right,
        value: u8,
    },
    /// A line of the run, by its number.
    Log {
        right: Right,
        line: u8,
    },
    Logs(Slot),
    Settle {
        right: Right,
        how: Settling,
    },
    Extend {
        rights: Vec<Right>,
        term: i64,
    },
    Promote,
    Reap {
        max_stalled: Option<u32>,
    },
    /// Both in one call, and what there is to look after.
    Beat {
        max_stalled: Option<u32>,
    },
    Revive(Slot),
    Remove(Slot),
    Cancel(Slot),
    Update {
        slot: Slot,
        payload: Option<u8>,
        priority: Option<i32>,
        when: Option<When>,
    },
    Trim {
        age: i64,
        count: u64,
    },
    Counts,
    Look(Slot),
    List {
        shelf: Shelf,
        offset: u64,
        count: usize,
    },
    /// An operator pauses a lane or the queue.
    Pause(Option<Lane>),
    /// And lets it go on.
    Resume(Option<Lane>),
    Tune {
        lane: Option<Lane>,
        tuning: Tuning,
    },
    Reassign(Slot, Option<Lane>),
    DrainLane(Lane),
    LookAtLane(Lane),
    /// At what is set of the queue.
    Limits,
    /// So many at least.
    Partitions(u32),
    ListLanes,
    Purge {
        shelf: Shelf,
        age: i64,
    },
    Obliterate {
        force: bool,
    },
    /// What is done with recurring jobs.
    Repeat(Repeat),
    /// A waiting worker takes the marker.
    TakeMarker,
    /// Time passes.
    Advance(i64),
}
