//! What is noted in the ledger of the runs of the jobs.

use std::{fmt, str::FromStr};

/// What is noted of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Its number is how often its job had stalled.
    Begin,
    /// Its number is the mark of what it does.
    Mark,
    Snooze,
    /// It was told that it comes too often.
    Limited,
    /// It holds its job, and so a slot of its lane.
    Enter,
    /// It is about to ask whether it still holds it.
    Leave,
    /// It did, when it was about to.
    Left,
    /// A progress and a line of the log were kept.
    Told,
    /// The effect was written.
    Effect,
    /// The effect of an earlier run was there.
    FoundDone,
    /// A newer run had begun, so there was no effect.
    Overtaken,
    End,
    /// What it has left behind reported for the job when a newer run had begun, and that was kept.
    ToldLate,
    /// That was refused.
    RefusedLate,
}

impl What {
    const ALL: [Self; 14] = [
        Self::Begin,
        Self::Mark,
        Self::Snooze,
        Self::Limited,
        Self::Enter,
        Self::Leave,
        Self::Left,
        Self::Told,
        Self::Effect,
        Self::FoundDone,
        Self::Overtaken,
        Self::End,
        Self::ToldLate,
        Self::RefusedLate,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Mark => "mark",
            Self::Snooze => "snooze",
            Self::Limited => "limited",
            Self::Enter => "enter",
            Self::Leave => "leave",
            Self::Left => "left",
            Self::Told => "told",
            Self::Effect => "effect",
            Self::FoundDone => "found done",
            Self::Overtaken => "overtaken",
            Self::End => "end",
            Self::ToldLate => "told late",
            Self::RefusedLate => "refused late",
        }
    }
}

impl FromStr for What {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|what| what.word() == word).ok_or(())
    }
}

/// One line of the ledger; `seq` is the order in which they were written, by whichever process.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    pub(crate) time: i64,
    pub(crate) job: String,
    pub(crate) fence: u64,
    pub(crate) pid: u32,
    pub(crate) what: What,
    pub(crate) number: u64,
}

/// A slot of a recurring job, and a job that has run for it.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    /// Unix ms.
    pub(crate) at: i64,
    pub(crate) job: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, time, fence, pid, what, number, .. } = self;
        write!(f, "{time} #{seq} token {fence} in process {pid}: {}", what.word())?;
        match what {
            What::Begin | What::Mark => write!(f, " {number}"),
            _ => Ok(()),
        }
    }
}
