use std::{fmt, time::Duration};

use super::catch_panic::caught;
use crate::{
    job::{Completion, JobError, error_text},
    store::Settled,
};

/// What is to become of a job after a run: what [`RetryLayer`](super::RetryLayer) and
/// [`DeadLetterLayer`](super::DeadLetterLayer) decide, and [`SettleLayer`](super::SettleLayer) writes.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::layer::Outcome;
///
/// let outcome = Outcome::Retry { delay: Duration::from_secs(1), error: "reset".into() };
/// assert_eq!(outcome.word(), "retry");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done.
    Done(Completion),
    /// It failed, and is to run again.
    Retry {
        /// After this wait.
        delay: Duration,
        /// The text of the failure.
        error: String,
    },
    /// It failed for good.
    Dead {
        /// The text of the failure.
        error: String,
    },
    /// It asked to run later; nothing failed.
    Snooze {
        /// After this wait.
        delay: Duration,
        /// The reason it gave.
        why: String,
    },
    /// A limit elsewhere is reached: it is to wait, and its lane, or else its queue, with it; nothing failed.
    Hold {
        /// For this long.
        delay: Duration,
        /// The reason it gave.
        why: String,
    },
    /// It has nothing to do any more.
    Discard {
        /// The reason it gave.
        why: String,
    },
    /// The worker shuts down: another one is to run it, at once.
    Release,
    /// Somebody has cancelled it, and the run was dropped.
    Cancelled,
}

impl Outcome {
    /// The outcome in one word, for logs and metrics: `done`, `retry`, `dead`, `snooze`, `hold`, `discard`, `release` or
    /// `cancelled`.
    ///
    /// ```
    /// assert_eq!(emq::layer::Outcome::Release.word(), "release");
    /// ```
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Retry { .. } => "retry",
            Self::Dead { .. } => "dead",
            Self::Snooze { .. } => "snooze",
            Self::Hold { .. } => "hold",
            Self::Discard { .. } => "discard",
            Self::Release => "release",
            Self::Cancelled => "cancelled",
        }
    }

    /// The text of the failure or the reason, if it has one.
    ///
    /// ```
    /// let outcome = emq::layer::Outcome::Dead { error: "no such student".into() };
    /// assert_eq!(outcome.text(), Some("no such student"));
    /// ```
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Retry { error: text, .. }
            | Self::Dead { error: text }
            | Self::Snooze { why: text, .. }
            | Self::Hold { why: text, .. }
            | Self::Discard { why: text } => Some(text),
            Self::Done(_) | Self::Release | Self::Cancelled => None,
        }
    }
}

/// A failure that [`RetryLayer`](super::RetryLayer) won't have run again: it was permanent, or the last that the job may
/// have.
///
/// Only [`DeadLetterLayer`](super::DeadLetterLayer) accepts it, so a stack without that layer doesn't compile.
#[derive(Debug)]
pub struct Declined {
    error: JobError,
}

impl Declined {
    pub(crate) fn new(error: JobError) -> Self {
        Self { error }
    }

    /// The failure.
    ///
    /// ```
    /// # fn example(declined: emq::layer::Declined) {
    /// println!("{}", declined.error());
    /// # }
    /// ```
    #[must_use]
    pub fn error(&self) -> &JobError {
        &self.error
    }

    /// The text alone. The error is the job's own type: its text, its source or its `Drop` may panic.
    pub(super) fn into_text(self) -> String {
        caught(move || error_text(self.error.get_ref())).unwrap_or_else(|panicked| panicked.to_string())
    }
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not to be retried: {}", self.error)
    }
}

impl std::error::Error for Declined {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.error.get_ref())
    }
}

/// How a delivery ended: what was decided, and whether the server took it.
///
/// # Examples
///
/// ```
/// use emq::layer::Ended;
///
/// fn is_ours(ended: &Ended) -> bool {
///     matches!(ended, Ended::Settled { settled, .. } if settled.is_settled())
/// }
/// assert!(!is_ours(&Ended::Lost));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The server answered; it may have refused because the token had become stale.
    Settled {
        /// What was decided.
        outcome: Outcome,
        /// What the server said.
        settled: Settled,
    },
    /// The server couldn't be told before the lease ended: the job will be delivered again.
    Unsettled {
        /// What was decided.
        outcome: Outcome,
    },
    /// The lease was lost while the job ran: the run was dropped and nothing was written.
    Lost,
}
