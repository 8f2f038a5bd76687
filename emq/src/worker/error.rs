use std::fmt;

use crate::{job::NameError, store::ConnectError};

/// Why a worker can't be built: every problem, not only the first.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: emq::Client) {
/// let error = emq::Worker::builder(&client).queue("has space").build().unwrap_err();
/// for problem in error.problems() {
///     println!("{problem}");
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct BuildError {
    problems: Vec<BuildProblem>,
}

impl BuildError {
    pub(super) fn new(problems: Vec<BuildProblem>) -> Self {
        Self { problems }
    }

    /// The problems, at least one.
    ///
    /// ```no_run
    /// # fn example(error: emq::BuildError) {
    /// assert!(!error.problems().is_empty());
    /// # }
    /// ```
    #[must_use]
    pub fn problems(&self) -> &[BuildProblem] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker can't be built")?;
        let mut separator = ": ";
        for problem in &self.problems {
            write!(f, "{separator}{problem}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// One reason why a worker can't be built.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: emq::Client) {
/// use emq::BuildProblem;
///
/// let error = emq::Worker::builder(&client).build().unwrap_err();
/// assert_eq!(error.problems(), [BuildProblem::NoJobs]);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProblem {
    /// No job was registered.
    #[error("it has no jobs; register at least one with `.register::<J>()`")]
    NoJobs,
    /// Two jobs answer to one name.
    #[error(
        "two jobs answer to the name {name:?}: the one at {first} and the one at {second}; rename one, or take the name out of its `was`"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the first is defined.
        first: &'static str,
        /// Where the second is defined.
        second: &'static str,
    },
    /// A job's type says that it recurs, and it can't.
    #[error("the job {job:?} can't recur: {reason}")]
    Recurring {
        /// Its name.
        job: String,
        /// Why.
        reason: String,
    },
    /// A queue's name can't be one.
    #[error(transparent)]
    Queue(#[from] NameError),
    /// A concurrency of zero.
    #[error("a concurrency of 0 for {of} would never run a job; it is at least 1")]
    NoConcurrency {
        /// What it was set for.
        of: String,
    },
    /// A duration of zero or next to it.
    #[error("{setting} is {value}, and has to be at least {least}")]
    TooShort {
        /// Which setting.
        setting: String,
        /// Its value.
        value: String,
        /// The shortest that works.
        least: &'static str,
    },
    /// Stalls that would bury every job at once.
    #[error("max_stalled is 0, which would bury a job that never stalled; it is at least 1, or `None` for never")]
    NoStalls,
    /// A concurrency, a weight or reserved slots for a queue that the worker doesn't serve.
    #[error(
        "something is set for the queue {queue:?}, which the worker doesn't serve; add it with `.queue({queue:?})`"
    )]
    UnservedQueue {
        /// The queue.
        queue: String,
    },
    /// More slots are reserved than there are, or all of them and a queue is left without any.
    #[error(
        "{reserved} slots are reserved of the {concurrency} that the worker has, and {others} queues share the rest; raise the concurrency or reserve fewer"
    )]
    TooManyReserved {
        /// How many are reserved, of all queues together.
        reserved: usize,
        /// How many the worker has.
        concurrency: usize,
        /// How many queues have none reserved.
        others: usize,
    },
    /// More slots are reserved for a queue than it may use.
    #[error(
        "{reserved} slots are reserved for the queue {queue:?}, which may have {limit} jobs in hand; raise its concurrency or reserve fewer"
    )]
    ReservedBeyondLimit {
        /// The queue.
        queue: String,
        /// How many are reserved for it.
        reserved: usize,
        /// Its concurrency.
        limit: usize,
    },
    /// Weights in a strict order.
    #[error("weights say nothing in a strict order; take out `.strict_order()` or the weights")]
    WeightsInStrictOrder,
}

/// Why a worker couldn't start, or couldn't go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Its own connections couldn't be made.
    #[error("the worker can't start: {0}")]
    Connect(#[from] ConnectError),
    /// One of the tasks that fetch, wait and look after the queues panicked, and the worker has stopped: without it, it
    /// would live on and do nothing.
    #[error("a task of the worker panicked, and the worker has stopped: see the panic's message; start it again")]
    Panicked,
}
