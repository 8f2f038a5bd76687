use std::{
    error::Error,
    fmt::{self, Write as _},
    time::Duration,
};

/// Any error, boxed; what services of the stack fail with.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Why a run of a job didn't succeed, and what is to happen next.
///
/// Every error converts into it with `?` and means "run it again after the backoff, and bury it when the attempts are
/// used up". Its constructors say more. It doesn't implement [`Error`] itself, for the same reason as `anyhow::Error`:
/// that is what lets `?` accept every error.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::JobError;
///
/// async fn charge(card: &str, amount: u32) -> Result<(), JobError> {
///     if amount == 0 {
///         return Err(JobError::discard("nothing to charge"));
///     }
///     let digits: u64 = card.parse().map_err(JobError::permanent)?; // another run can't mend the number
///     let busy = digits == 0;
///     if busy {
///         return Err(JobError::retry_after(Duration::from_secs(30)));
///     }
///     std::fs::read_to_string("/proc/version")?; // an ordinary error: retried with the job's backoff
///     Ok(())
/// }
/// ```
pub struct JobError {
    kind: JobErrorKind,
    source: BoxError,
}

/// What is to happen with the job of a [`JobError`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::{JobError, JobErrorKind};
///
/// let error = JobError::retry_after(Duration::from_secs(30));
/// assert_eq!(error.kind(), JobErrorKind::RetryAfter(Duration::from_secs(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobErrorKind {
    /// Run it again after the job's backoff, if attempts are left.
    Retry,
    /// Run it again after this wait instead of the backoff, if attempts are left.
    RetryAfter(Duration),
    /// Bury it now: another run can't succeed.
    Permanent,
    /// Run it again after this wait; it didn't fail, and no attempt is used up.
    Snooze(Duration),
    /// Run it again, and nothing else of its lane, or else of its queue, before this wait is over; it didn't fail, and no
    /// attempt is used up.
    RateLimited(Duration),
    /// End it now without a dead letter: it has nothing to do any more.
    Discard,
}

impl JobError {
    /// A failure that is retried with the job's backoff: what `?` makes of any error.
    ///
    /// ```
    /// use emq::{JobError, JobErrorKind};
    ///
    /// assert_eq!(JobError::new("the mail server said 451").kind(), JobErrorKind::Retry);
    /// ```
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self::from_kind(JobErrorKind::Retry, error)
    }

    /// A failure that no further run can mend: the job is buried at once, whatever attempts are left.
    ///
    /// ```
    /// use emq::{JobError, JobErrorKind};
    ///
    /// assert_eq!(JobError::permanent("no such student").kind(), JobErrorKind::Permanent);
    /// ```
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Self::from_kind(JobErrorKind::Permanent, error)
    }

    /// A failure that is retried after `delay` instead of the job's backoff; [`because`](Self::because) adds the reason.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::JobError;
    ///
    /// let error = JobError::retry_after(Duration::from_secs(30)).because("429 Too Many Requests");
    /// assert_eq!(error.to_string(), "429 Too Many Requests");
    /// ```
    #[must_use]
    pub fn retry_after(delay: Duration) -> Self {
        Self::from_kind(JobErrorKind::RetryAfter(delay), "the job asked to be retried later")
    }

    /// No failure: the job is to run again after `delay`, and it costs no attempt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::{JobError, JobErrorKind};
    ///
    /// let error = JobError::snooze(Duration::from_secs(60));
    /// assert_eq!(error.kind(), JobErrorKind::Snooze(Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn snooze(delay: Duration) -> Self {
        Self::from_kind(JobErrorKind::Snooze(delay), "the job asked to run later")
    }

    /// No failure: somebody else says that we come too often, as by HTTP's 429. The job goes back to its place, and nothing of
    /// its lane ([`Draft::group`](crate::Draft::group)) starts for `delay`; of the whole queue, if it has no lane. It costs no
    /// attempt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::{JobError, JobErrorKind};
    ///
    /// let error = JobError::rate_limited(Duration::from_secs(30)).because("429 Too Many Requests");
    /// assert_eq!(error.kind(), JobErrorKind::RateLimited(Duration::from_secs(30)));
    /// ```
    #[must_use]
    pub fn rate_limited(delay: Duration) -> Self {
        Self::from_kind(JobErrorKind::RateLimited(delay), "a limit elsewhere is reached")
    }

    /// The job has nothing to do any more: it ends as if it had succeeded, without a result.
    ///
    /// ```
    /// use emq::{JobError, JobErrorKind};
    ///
    /// assert_eq!(JobError::discard("the account is gone").kind(), JobErrorKind::Discard);
    /// ```
    pub fn discard(why: impl Into<BoxError>) -> Self {
        Self::from_kind(JobErrorKind::Discard, why)
    }

    /// Replaces the reason, keeping what is to happen.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::JobError;
    ///
    /// let error = JobError::snooze(Duration::from_secs(60)).because("the import has not finished");
    /// assert_eq!(error.to_string(), "the import has not finished");
    /// ```
    #[must_use]
    pub fn because(self, why: impl Into<BoxError>) -> Self {
        Self::from_kind(self.kind, why)
    }

    /// What is to happen with the job.
    ///
    /// ```
    /// use emq::{JobError, JobErrorKind};
    ///
    /// let error: JobError = std::io::Error::other("reset").into();
    /// assert_eq!(error.kind(), JobErrorKind::Retry);
    /// ```
    #[must_use]
    pub fn kind(&self) -> JobErrorKind {
        self.kind
    }

    /// The error behind it.
    ///
    /// ```
    /// use emq::JobError;
    ///
    /// let error: JobError = std::io::Error::other("reset").into();
    /// assert!(error.get_ref().is::<std::io::Error>());
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    /// The error that a service of the stack failed with, with its intent if it began as a `JobError`.
    ///
    /// ```
    /// use emq::{BoxError, JobError, JobErrorKind};
    ///
    /// let boxed: BoxError = JobError::permanent("no such student").into();
    /// assert_eq!(JobError::from_box(boxed).kind(), JobErrorKind::Permanent);
    /// ```
    #[must_use]
    pub fn from_box(error: BoxError) -> Self {
        match error.downcast::<Boxed>() {
            Ok(boxed) => boxed.0,
            Err(other) => Self::new(other),
        }
    }

    fn from_kind(kind: JobErrorKind, source: impl Into<BoxError>) -> Self {
        Self { kind, source: source.into() }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::from_box(Box::new(error))
    }
}

impl From<JobError> for BoxError {
    fn from(error: JobError) -> Self {
        Box::new(Boxed(error))
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobError").field("kind", &self.kind).field("source", &self.source).finish()
    }
}

/// Carries a `JobError`, which isn't an [`Error`], through services whose error is a [`BoxError`].
#[derive(Debug)]
struct Boxed(JobError);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Boxed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.source()
    }
}

/// The most bytes of an error's text that are kept with a job: 8 KiB.
const MAX_ERROR_TEXT: usize = 8 * 1024;

/// The text of an error and its sources, `a: b: c`, cut at a character to at most [`MAX_ERROR_TEXT`] bytes.
pub(crate) fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Many errors print their source themselves: it would only stand there twice.
        let next = error.to_string();
        if !text.contains(&next) {
            let _ = write!(text, ": {next}");
        }
        if text.len() > MAX_ERROR_TEXT {
            break;
        }
        source = error.source();
    }
    if text.len() > MAX_ERROR_TEXT {
        const CUT: &str = " [cut]";
        let mut end = MAX_ERROR_TEXT - CUT.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intent_survives_the_way_through_boxed_services() {
        for error in [
            JobError::new("a"),
            JobError::permanent("a"),
            JobError::retry_after(Duration::from_secs(1)).because("a"),
            JobError::snooze(Duration::from_secs(1)).because("a"),
            JobError::rate_limited(Duration::from_secs(1)).because("a"),
            JobError::discard("a"),
        ] {
            let kind = error.kind();
            let back = JobError::from_box(BoxError::from(error));
            assert_eq!(back.kind(), kind);
            assert_eq!(back.to_string(), "a");
        }
    }

    #[test]
    fn an_error_text_names_its_sources_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("can't enrol")]
        struct Outer(#[source] std::io::Error);
        #[derive(Debug, thiserror::Error)]
        #[error("can't enrol: {0}")]
        struct Echo(#[source] std::io::Error);
        assert_eq!(error_text(&Outer(std::io::Error::other("disk full"))), "can't enrol: disk full");
        assert_eq!(error_text(&Echo(std::io::Error::other("disk full"))), "can't enrol: disk full");
    }

    #[test]
    fn a_long_error_text_is_cut_at_a_character() {
        let long = JobError::new("é".repeat(20_000) + "\0\r\n");
        let text = error_text(long.get_ref());
        assert!(text.len() <= MAX_ERROR_TEXT && text.len() > MAX_ERROR_TEXT - 8, "{}", text.len());
        assert!(text.ends_with("é [cut]"));
    }
}
