//! What a sequence is made of: calls of the public API, and what the world does in between.

use std::fmt;

/// Half an hour in ms. All waits and leaps of the clock are multiples of it, so that the ms that a real server needs for
/// a sequence never decide whether something is due.
pub(crate) const HALF_HOUR: i64 = 30 * 60 * 1_000;

pub(crate) const HOUR: i64 = 2 * HALF_HOUR;

pub(crate) const WORKERS: usize = 3;

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
    /// of bytes that isn't the order of numbers shows.
    pub(crate) const NUMBERS: [u64; 8] = [1, 9, 10, 35, 36, 61, 62, 62 * 62 * 62 + 5];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::NUMBERS.len()).map(Self)
    }
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
    pub(crate) key: Option<u8>,
    pub(crate) rules: Rules,
    pub(crate) when: When,
    pub(crate) priority: i32,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) header: bool,
    pub(crate) lane: Option<Lane>,
    /// In ms from the server's now.
    pub(crate) expires: Option<i64>,
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
    Complete {
        right: Right,
        retention: i64,
        result: Option<u8>,
    },
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
    ListLanes,
    /// A waiting worker takes the marker.
    TakeMarker,
    /// Time passes.
    Advance(i64),
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "J{}", self.0)
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'a' + self.0))
    }
}

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}#{}", self.slot, self.token)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} payload {}", self.slot, self.payload)?;
        if let Some(key) = self.key {
            write!(f, " key k{key}")?;
            if self.rules != Rules::default() {
                write!(f, " {:?}", self.rules)?;
            }
        }
        match self.when {
            When::Now => {}
            When::After(wait) => write!(f, " after {}", Wait(wait))?,
            When::At(wait) => write!(f, " at now{:+} h", wait as f64 / HOUR as f64)?,
        }
        if self.priority != 0 {
            write!(f, " priority {}", self.priority)?;
        }
        if let Some(max) = self.max_attempts {
            write!(f, " max_attempts {max}")?;
        }
        if self.header {
            write!(f, " with a header")?;
        }
        if let Some(lane) = self.lane {
            write!(f, " in {lane:?}")?;
        }
        if let Some(wait) = self.expires {
            write!(f, " expires in {}", Wait(wait))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueue(spec) => write!(f, "enqueue {spec:?}"),
            Self::EnqueueMany(specs) => write!(f, "enqueue_many {specs:?}"),
            Self::Claim { worker, max, lease, lost } => {
                write!(f, "claim by w{worker}, {max} for {}", Wait(*lease))?;
                if *lost { write!(f, ", the answer is lost") } else { Ok(()) }
            }
            Self::Leave { worker } => write!(f, "w{worker} leaves"),
            Self::Complete { right, retention, result } => {
                write!(f, "complete {right:?}, keep {}", Wait(*retention))?;
                result.map_or(Ok(()), |result| write!(f, ", result {result}"))
            }
            Self::Settle { right, how: Settling::Retry { delay, error } } => {
                write!(f, "retry {right:?} after {}, error {error}", Wait(*delay))
            }
            Self::Settle { right, how: Settling::Bury { error } } => write!(f, "bury {right:?}, error {error}"),
            Self::Settle { right, how: Settling::Snooze { delay } } => {
                write!(f, "snooze {right:?} for {}", Wait(*delay))
            }
            Self::Settle { right, how: Settling::Hold { delay } } => write!(f, "hold {right:?} for {}", Wait(*delay)),
            Self::Settle { right, how: Settling::Release } => write!(f, "release {right:?}"),
            Self::Extend { rights, term } => write!(f, "extend {rights:?} to {}", Wait(*term)),
            Self::Promote => write!(f, "promote"),
            Self::Reap { max_stalled } => write!(f, "reap, max_stalled {max_stalled:?}"),
            Self::Revive(slot) => write!(f, "revive {slot:?}"),
            Self::Settle { right, how: Settling::Cancel } => write!(f, "cancel {right:?}, by its holder"),
            Self::Cancel(slot) => write!(f, "cancel {slot:?}"),
            Self::Update { slot, payload, priority, when } => {
                write!(f, "update {slot:?}, payload {payload:?}, priority {priority:?}, {when:?}")
            }
            Self::Remove(slot) => write!(f, "remove {slot:?}"),
            Self::Trim { age, count } => write!(f, "trim, keep {count} for {}", Wait(*age)),
            Self::Counts => write!(f, "counts"),
            Self::Look(slot) => write!(f, "look at {slot:?}"),
            Self::List { shelf, offset, count } => write!(f, "list {shelf:?}, {count} from {offset}"),
            Self::Pause(lane) => write!(f, "pause {}", Of(*lane)),
            Self::Resume(lane) => write!(f, "resume {}", Of(*lane)),
            Self::Tune { lane, tuning } => write!(f, "tune {}: {tuning:?}", Of(*lane)),
            Self::Reassign(slot, lane) => write!(f, "reassign {slot:?} to {lane:?}"),
            Self::DrainLane(lane) => write!(f, "drain {lane:?}"),
            Self::LookAtLane(lane) => write!(f, "look at {lane:?}"),
            Self::ListLanes => write!(f, "list the lanes"),
            Self::TakeMarker => write!(f, "(a waiting worker takes the marker)"),
            Self::Advance(wait) => write!(f, "({} pass)", Wait(*wait)),
        }
    }
}

/// A lane, or the queue.
struct Of(Option<Lane>);

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(lane) => write!(f, "{lane:?}"),
            None => write!(f, "the queue"),
        }
    }
}

struct Wait(i64);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} h", self.0 as f64 / HOUR as f64)
    }
}
