//! How verbs are printed: short, since a sequence that fails is read by people.

use std::fmt;

use super::{Done, HOUR, Key, Lane, Name, Right, Rules, Settling, Slot, Spec, Verb, When};

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

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(key) => write!(f, "k{key}"),
            Self::Slot(name, slot) => write!(f, "{name:?}.{slot}"),
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, keep {}", self.right, Wait(self.retention))?;
        self.result.map_or(Ok(()), |result| write!(f, ", result {result}"))
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} payload {}", self.slot, self.payload)?;
        if let Some(key) = self.key {
            write!(f, " key {key:?}")?;
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
            Self::Complete(done) => write!(f, "complete {done:?}"),
            Self::CompleteMany(done) => write!(f, "complete {done:?}"),
            Self::Exchange { done, max, lease, lost } => {
                write!(f, "exchange {done:?} for {max} for {}", Wait(*lease))?;
                if *lost { write!(f, ", the answer is lost") } else { Ok(()) }
            }
            Self::Progress { right, value } => write!(f, "progress {value} of {right:?}"),
            Self::Log { right, line } => write!(f, "log line {line} of {right:?}"),
            Self::Logs(slot) => write!(f, "logs of {slot:?}"),
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
            Self::Beat { max_stalled } => write!(f, "beat, max_stalled {max_stalled:?}"),
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
            Self::Partitions(at_least) => write!(f, "{at_least} partitions at least"),
            Self::Limits => write!(f, "limits"),
            Self::ListLanes => write!(f, "list the lanes"),
            Self::Purge { shelf, age } => write!(f, "purge {shelf:?}, older than {}", Wait(*age)),
            Self::Obliterate { force } => write!(f, "obliterate, force {force}"),
            Self::Repeat(repeat) => write!(f, "{repeat:?}"),
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

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}
