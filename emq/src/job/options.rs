use std::time::Duration;

use super::backoff::{Backoff, DEFAULT_BACKOFF};

/// The queue of a job that names none.
pub const DEFAULT_QUEUE: &str = "default";

/// How often a job is run before it is buried, unless it says otherwise: 20.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 20;

/// How long a finished job is remembered, unless it says otherwise: 1 hour.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(60 * 60);

/// What a job type says about itself: where it waits, how often and how long it runs.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::{Backoff, JobOptions};
///
/// const OPTIONS: JobOptions = JobOptions::new()
///     .queue("enrollments")
///     .max_attempts(5)
///     .timeout(Duration::from_secs(30))
///     .backoff(Backoff::exponential(Duration::from_secs(1), Duration::from_secs(600)));
/// assert_eq!(OPTIONS.queue, "enrollments");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobOptions {
    /// The queue; `default` by default.
    pub queue: &'static str,
    /// How many runs may fail before the job is buried; 20 by default, at least 1. A run whose lease ran out has stalled,
    /// which is counted apart: see [`WorkerBuilder::max_stalled`](crate::WorkerBuilder::max_stalled).
    pub max_attempts: u32,
    /// Its priority, unless its enqueue says otherwise: the lower runs first; 0 by default.
    pub priority: i32,
    /// How long one run may take before it counts as failed; no limit by default.
    pub timeout: Option<Duration>,
    /// How long the server waits for a sign of life before it gives the job to another worker; the worker's own lease
    /// (30 s by default) unless set.
    pub lease: Option<Duration>,
    /// The wait after a failure; exponential from 1 s to 1 day by default.
    pub backoff: Backoff,
    /// How long the id of the finished job is remembered (an enqueue of it is a duplicate until then) and its result
    /// kept; 1 hour by default, at least 1 minute.
    pub retention: Duration,
}

impl JobOptions {
    /// The defaults.
    ///
    /// ```
    /// assert_eq!(emq::JobOptions::new().max_attempts, 20);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queue: DEFAULT_QUEUE,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            priority: 0,
            timeout: None,
            lease: None,
            backoff: DEFAULT_BACKOFF,
            retention: DEFAULT_RETENTION,
        }
    }

    /// Sets [`queue`](Self::queue).
    ///
    /// ```
    /// assert_eq!(emq::JobOptions::new().queue("mail").queue, "mail");
    /// ```
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// Sets [`max_attempts`](Self::max_attempts); 0 counts as 1.
    ///
    /// ```
    /// assert_eq!(emq::JobOptions::new().max_attempts(0).max_attempts, 1);
    /// ```
    #[must_use]
    pub const fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = if max_attempts == 0 { 1 } else { max_attempts };
        self
    }

    /// Sets [`priority`](Self::priority).
    ///
    /// ```
    /// assert_eq!(emq::JobOptions::new().priority(-10).priority, -10);
    /// ```
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets [`timeout`](Self::timeout).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = emq::JobOptions::new().timeout(Duration::from_secs(30));
    /// assert_eq!(options.timeout, Some(Duration::from_secs(30)));
    /// ```
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets [`lease`](Self::lease).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = emq::JobOptions::new().lease(Duration::from_secs(120));
    /// assert_eq!(options.lease, Some(Duration::from_secs(120)));
    /// ```
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets [`backoff`](Self::backoff).
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::{Backoff, JobOptions};
    ///
    /// let options = JobOptions::new().backoff(Backoff::fixed(Duration::from_secs(5)));
    /// assert_eq!(options.backoff, Backoff::fixed(Duration::from_secs(5)));
    /// ```
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets [`retention`](Self::retention).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = emq::JobOptions::new().retention(Duration::from_secs(86_400));
    /// assert_eq!(options.retention, Duration::from_secs(86_400));
    /// ```
    #[must_use]
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }
}

impl Default for JobOptions {
    fn default() -> Self {
        Self::new()
    }
}
