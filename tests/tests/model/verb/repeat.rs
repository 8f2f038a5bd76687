//! What is done with recurring jobs. To the scripts a slot is no more than a number, and a schedule than a text: what they
//! mean is computed elsewhere. So the numbers are small ones, which are all due, or lie decades ahead; time doesn't move them.

use super::{Lane, Slot};
use crate::model::{HEADER, NAME};

/// A slot that isn't due for decades; later ones come after it.
pub(crate) const FAR: i64 = 4_000_000_000_000;

/// One of a few recurring jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(pub(crate) u8);

impl Name {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..2).map(Self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Upsert {
        name: Name,
        first: i64,
        template: Template,
    },
    Pause(Name),
    /// With the slot that was computed by this schedule.
    Resume {
        name: Name,
        schedule: u8,
        next: i64,
    },
    /// If it stands at this slot, or at any.
    Remove {
        name: Name,
        stands_at: Option<i64>,
    },
    Fire(Vec<Turn>),
    Due {
        offset: usize,
        limit: usize,
    },
    Get(Name),
    List {
        offset: u64,
        count: usize,
    },
}

/// What is registered: when, and what each slot's job gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) schedule: u8,
    pub(crate) missed: emq::Missed,
    pub(crate) overlap: emq::Overlap,
    pub(crate) payload: u8,
    pub(crate) priority: i32,
    pub(crate) lane: Option<Lane>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) header: bool,
    /// In ms from the server's now.
    pub(crate) expires: Option<i64>,
}

impl Template {
    pub(crate) fn schedule_text(schedule: u8) -> String {
        format!("every {} -", 1_000 * (i64::from(schedule) + 1))
    }

    /// The fields of its record, beside the schedule: as the library names them.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let fields = [
            ("missed", Some(self.missed.to_string())),
            ("overlap", Some(self.overlap.to_string())),
            ("payload", Some(format!("{{\"n\":{}}}", self.payload))),
            ("name", Some(NAME.to_owned())),
            ("priority", (self.priority != 0).then(|| self.priority.to_string())),
            ("group", self.lane.map(|lane| format!("{lane:?}"))),
            ("max_attempts", self.max_attempts.map(|max| max.to_string())),
            ("headers", self.header.then(|| format!("{{\"origin\":\"{HEADER}\"}}"))),
            ("expires", self.expires.map(|wait| wait.to_string())),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    }

    /// A text that is another for each template.
    pub(crate) fn digest(&self) -> String {
        let fields = self.fields().into_iter().map(|(field, value)| format!("/{field} {value}"));
        Self::schedule_text(self.schedule) + &fields.collect::<String>()
    }
}

/// What is to become of one recurring job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) name: Name,
    /// Nothing runs it beside its slots.
    pub(crate) stands_at: Option<i64>,
    pub(crate) next: Option<i64>,
    pub(crate) runs: Vec<Run>,
}

/// A job, and the slot that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) job: Slot,
    pub(crate) slot: Option<i64>,
}

impl Repeat {
    /// What the slots of a new schedule count from.
    pub(crate) fn start_of(first: i64) -> i64 {
        first - 1_000
    }
}
