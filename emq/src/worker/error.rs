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
    /// A concurrency for a queue that the worker doesn't serve.
    #[error(
        "a concurrency is set for the queue {queue:?}, which the worker doesn't serve; add it with `.queue({queue:?})`"
    )]
    UnservedQueue {
        /// The queue.
        queue: String,
    },
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
