use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Serialize;

use super::{
    FromContext, Scope,
    report::{MAX_PROGRESS, ReportError, Reporter, Reports},
};
use crate::{
    job::{JobError, JobId, QueueName},
    latch::Latch,
    recurring::system_time,
    store::Lease,
};

/// What a running job knows about its run: its id, its fencing token, how often it was tried, its headers.
///
/// # Examples
///
/// ```
/// use emq::JobContext;
///
/// async fn charge(invoice: u64, ctx: JobContext) {
///     // The same for every run of this job: what a payment provider wants as the idempotency key.
///     let key = ctx.id().to_string();
///     // Greater with every run: what a conditional write compares.
///     let fence = ctx.fence();
///     # let _ = (invoice, key, fence);
/// }
/// # let _ = charge(1, JobContext::for_test());
/// ```
#[derive(Clone, Debug)]
pub struct JobContext {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    parts: ContextParts,
    run: Arc<Run>,
}

/// What [`JobContext`] is made of, by name.
#[derive(Clone, Debug)]
pub(crate) struct ContextParts {
    pub(crate) id: JobId,
    pub(crate) token: u64,
    pub(crate) name: String,
    pub(crate) queue: QueueName,
    pub(crate) failures: u32,
    pub(crate) stalled: u32,
    pub(crate) max_attempts: u32,
    pub(crate) lease: Duration,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) group: Option<String>,
    pub(crate) reporter: Reporter,
}

/// What all contexts of one run have in common, also those that were changed.
#[derive(Debug, Default)]
struct Run {
    given_up: Latch,
    /// How many lines it has logged. Held while one is sent: a line that is sent again is told by being the last.
    logged: tokio::sync::Mutex<u64>,
}

impl JobContext {
    pub(crate) fn from_parts(parts: ContextParts) -> Self {
        Self { inner: Arc::new(Inner { parts, run: Arc::default() }) }
    }

    /// The same, and what it tells goes there.
    pub(crate) fn reporting_to(mut self, reporter: Reporter) -> Self {
        Arc::make_mut(&mut self.inner).parts.reporter = reporter;
        self
    }

    /// A context for a test that calls the job's function: the first run of a job of the queue `test`.
    ///
    /// ```
    /// let ctx = emq::JobContext::for_test();
    /// assert_eq!((ctx.queue(), ctx.fence(), ctx.failures()), ("test", 1, 0));
    /// ```
    #[must_use]
    pub fn for_test() -> Self {
        Self::from_parts(ContextParts {
            id: crate::job::Minted::next(0).0,
            token: 1,
            name: "test".into(),
            queue: QueueName::for_test(),
            failures: 0,
            stalled: 0,
            max_attempts: crate::job::DEFAULT_MAX_ATTEMPTS,
            lease: Duration::from_secs(30),
            headers: HashMap::new(),
            group: None,
            reporter: Reporter::recorder(),
        })
    }

    /// The job's id: the same for every run, so the key for effects elsewhere.
    ///
    /// ```
    /// assert!(emq::JobContext::for_test().id().as_str().starts_with("JOB"));
    /// ```
    #[must_use]
    pub fn id(&self) -> JobId {
        self.inner.parts.id
    }

    /// The fencing token of this run: greater with every claim of the job, so that a write which is conditional on it
    /// refuses a run that was overtaken.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().fence(), 1);
    /// ```
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.inner.parts.token
    }

    /// The name the job stands under in the queue.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().name(), "test");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.parts.name
    }

    /// The queue it was claimed from.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().queue(), "test");
    /// ```
    #[must_use]
    pub fn queue(&self) -> &str {
        self.inner.parts.queue.as_str()
    }

    pub(crate) fn queue_name(&self) -> &QueueName {
        &self.inner.parts.queue
    }

    /// The group whose lane it waited in; `None` for the flat line.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().group(), None);
    /// ```
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.inner.parts.group.as_deref()
    }

    /// How many earlier runs ended in an error. Stalls, snoozes and releases aren't counted.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().failures(), 0);
    /// ```
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.inner.parts.failures
    }

    /// How many earlier runs ended because their lease ran out.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().stalls(), 0);
    /// ```
    #[must_use]
    pub fn stalls(&self) -> u32 {
        self.inner.parts.stalled
    }

    /// After how many failures the job is buried.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().max_attempts(), 20);
    /// ```
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.inner.parts.max_attempts
    }

    /// Whether a failure of this run would bury the job.
    ///
    /// ```
    /// assert!(!emq::JobContext::for_test().is_last_attempt());
    /// ```
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.inner.parts.failures.saturating_add(1) >= self.inner.parts.max_attempts
    }

    /// The lease of this run: how long the server waits without a sign of life. The worker renews it by itself.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(emq::JobContext::for_test().lease(), Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.inner.parts.lease
    }

    /// The error to end with when somebody else says that we come too often, as by HTTP's 429:
    /// [`JobError::rate_limited`]. The job goes back to its place without a failure, and nothing of its lane, or else of
    /// its queue, starts for `delay`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::{JobContext, JobError};
    ///
    /// async fn push(ctx: JobContext) -> Result<(), JobError> {
    ///     let retry_after = Some(Duration::from_secs(30)); // of the answer
    ///     match retry_after {
    ///         Some(wait) => Err(ctx.rate_limited(wait)),
    ///         None => Ok(()),
    ///     }
    /// }
    /// # let _ = push(JobContext::for_test());
    /// ```
    #[must_use]
    pub fn rate_limited(&self, delay: Duration) -> JobError {
        JobError::rate_limited(delay)
    }

    /// A header that the producer gave the job.
    ///
    /// ```
    /// assert_eq!(emq::JobContext::for_test().header("tenant"), None);
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.parts.headers.get(name).map(String::as_str)
    }

    /// The slot of a recurring job that this is the job of, by the server's clock; `None` for a job that was enqueued, or
    /// run beside its slots. It may be long past, for a slot that is made up for.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// let ctx = emq::JobContext::for_test().with_header("emq-slot", "60000");
    /// assert_eq!(ctx.slot(), Some(UNIX_EPOCH + Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn slot(&self) -> Option<SystemTime> {
        self.header("emq-slot")?.parse().ok().map(system_time)
    }

    /// The same context with one more header, for a test.
    ///
    /// ```
    /// let ctx = emq::JobContext::for_test().with_header("tenant", "north");
    /// assert_eq!(ctx.header("tenant"), Some("north"));
    /// ```
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.inner).parts.headers.insert(name.into(), value.into());
        self
    }

    /// Keeps how far this run is: any value that serializes, up to 64 KiB as JSON. It replaces the last one, is told to
    /// those who listen to the queue's events, and can be read with [`Queue::get`](crate::Queue::get) until the job is done.
    ///
    /// It is one call of the server, so say it every second or every hundred rows, and not for each row.
    ///
    /// # Errors
    ///
    /// [`ReportError`] if the run doesn't hold its job any more, the value can't be kept, or the server didn't say that it
    /// is. The run isn't lost by that: ignore it if the progress isn't worth failing for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the progress was kept.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// #[derive(serde::Serialize)]
    /// struct Rows {
    ///     done: u64,
    ///     of: u64,
    /// }
    ///
    /// let ctx = emq::JobContext::for_test();
    /// let _ = ctx.progress(&Rows { done: 300, of: 2_000 }).await;
    /// # }
    /// ```
    pub async fn progress<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), ReportError> {
        let value = serde_json::to_string(value)?;
        if value.len() > MAX_PROGRESS {
            return Err(ReportError::TooLarge { size: value.len(), limit: MAX_PROGRESS });
        }
        let kept = self.inner.parts.reporter.progress(self.held(), value).await?;
        if kept { Ok(()) } else { Err(ReportError::Stale) }
    }

    /// Adds a line to the job's log, which goes with the job: it is deleted when the job is done, and kept with a dead
    /// letter. The newest 1 000 lines of all its runs are kept, of each line the first 8 KiB;
    /// [`Queue::logs`](crate::Queue::logs) reads them.
    ///
    /// # Errors
    ///
    /// [`ReportError`] if the run doesn't hold its job any more, or the server didn't say that the line is kept.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the line was kept.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let ctx = emq::JobContext::for_test();
    /// let _ = ctx.log("the file has 2 000 rows").await;
    /// # }
    /// ```
    pub async fn log(&self, line: impl Into<String>) -> Result<(), ReportError> {
        let mut logged = self.inner.run.logged.lock().await;
        *logged += 1;
        let kept = self.inner.parts.reporter.log(self.held(), *logged, line.into()).await?;
        if kept { Ok(()) } else { Err(ReportError::Stale) }
    }

    /// What this run has told, in a test; nothing where it went to a server.
    ///
    /// ```
    /// assert!(emq::JobContext::for_test().reports().log.is_empty());
    /// ```
    #[must_use]
    pub fn reports(&self) -> Reports {
        self.inner.parts.reporter.reports()
    }

    /// Closed when the run is given up: it tells the handler, and what it has moved to other threads.
    pub(crate) fn given_up(&self) -> &Latch {
        &self.inner.run.given_up
    }

    fn held(&self) -> Lease {
        Lease::new(self.inner.parts.id, self.inner.parts.token)
    }

    /// Whether this run was given up before its end: somebody has cancelled the job, its lease was lost, its time is
    /// over, or the worker shuts down and its grace time is over. The function's future is dropped then by itself; this is
    /// for work that it has moved to other threads.
    ///
    /// ```
    /// assert!(!emq::JobContext::for_test().is_cancelled());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.run.given_up.is_closed()
    }

    /// Waits until this run has been given up.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// ```
    /// # async fn example(ctx: emq::JobContext) {
    /// let blocking = tokio::task::spawn_blocking({
    ///     let ctx = ctx.clone();
    ///     move || {
    ///         while !ctx.is_cancelled() {
    ///             # break;
    ///             // one slice of the work
    ///         }
    ///     }
    /// });
    /// tokio::select! {
    ///     _ = blocking => {}
    ///     () = ctx.cancelled() => {}
    /// }
    /// # }
    /// ```
    pub async fn cancelled(&self) {
        self.inner.run.given_up.closed().await;
    }
}

impl<S> FromContext<S> for JobContext {
    fn from_context(scope: &Scope<S>) -> Result<Self, JobError> {
        Ok(scope.context().clone())
    }
}
