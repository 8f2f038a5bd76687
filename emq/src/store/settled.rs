//! What the transitions that settle a claimed job answer.

use fred::types::Value;

use super::{
    error::CallError,
    reply::{unexpected, word},
};

/// What became of an attempt to settle a job.
///
/// # Examples
///
/// ```
/// use emq::Settled;
///
/// assert!(Settled::Accepted.is_settled());
/// assert!(Settled::Repeated.is_settled());
/// assert!(!Settled::Stale.is_settled());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settled {
    /// It was written.
    Accepted,
    /// The same had been written before, and nothing was written again. Of a completion it is not known by whom: a caller
    /// that repeats after a lost answer was it itself; for any other, another worker was, and its own token was stale.
    Repeated,
    /// Another worker holds the job, or it was settled in another way; nothing was written.
    Stale,
    /// There is no such job any more; nothing was written.
    Gone,
}

/// What became of a completion, and whether an earlier try of the call may have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) settled: Settled,
    pub(crate) repeated: bool,
}

impl Completed {
    /// The same to a caller whose own tries may have been carried out, or can't have been. A row that is gone holds no
    /// token, so the server can't tell a repeat from a stale completion; who repeats can.
    pub(crate) fn to(self, tried_before: bool) -> Settled {
        match self.settled {
            Settled::Repeated if !self.repeated && !tried_before => Settled::Stale,
            settled => settled,
        }
    }
}

impl Settled {
    /// Whether the job stands now as the call wanted it.
    ///
    /// ```
    /// assert!(!emq::Settled::Gone.is_settled());
    /// ```
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Accepted | Self::Repeated)
    }

    pub(super) fn read(call: &'static str, value: &Value) -> Result<Self, CallError> {
        match word(call, value)?.as_str() {
            "OK" => Ok(Self::Accepted),
            "DONE" => Ok(Self::Repeated),
            "STALE" => Ok(Self::Stale),
            "GONE" => Ok(Self::Gone),
            _ => Err(unexpected(call, value)),
        }
    }
}
