use crate::job::JobId;

/// The answer to an enqueue: the job's id, and whether it is new.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, job: SendEmailJob) -> Result<(), emq::EnqueueError> {
/// use emq::Admission;
///
/// let ticket = client.enqueue(job).unique("welcome-ada").await?;
/// match ticket.outcome() {
///     Admission::Enqueued => println!("{} waits", ticket.id()),
///     Admission::Duplicate(of) => println!("{of} is doing that already"),
///     other => println!("{other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    id: JobId,
    outcome: Admission,
}

/// Whether an enqueue made a new job.
///
/// # Examples
///
/// ```no_run
/// # fn example(ticket: emq::Ticket) {
/// use emq::Admission;
///
/// let is_new = ticket.outcome() == Admission::Enqueued;
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// The job was new, and is in the queue now: pending, or scheduled if it was given a time.
    Enqueued,
    /// Nothing was added: this job has the same id, or holds the same deduplication key. It may have ended, where the key
    /// outlives it.
    Duplicate(JobId),
    /// Nothing was added: this job, which has the same deduplication key and waits, does now what the new one was to do. See
    /// [`Unique::replace_payload`](crate::Unique::replace_payload).
    Replaced(JobId),
    /// The job was new, and waits until this one has ended, which runs and holds its deduplication key. See
    /// [`Unique::then_once`](crate::Unique::then_once).
    Parked(JobId),
}

impl Ticket {
    pub(super) fn new(id: JobId, outcome: Admission) -> Self {
        Self { id, outcome }
    }

    /// The id of the job that does the work: the new one's, or the one that this is a duplicate of or was merged into.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// println!("{}", ticket.id());
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> JobId {
        match self.outcome {
            Admission::Enqueued | Admission::Parked(_) => self.id,
            Admission::Duplicate(of) | Admission::Replaced(of) => of,
        }
    }

    /// Whether the job is new.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// if let emq::Admission::Duplicate(of) = ticket.outcome() {
    ///     println!("{of} is doing that already");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn outcome(&self) -> Admission {
        self.outcome
    }

    /// Whether nothing was written: the job is there already, or another holds its key.
    ///
    /// ```no_run
    /// # fn example(ticket: emq::Ticket) {
    /// assert!(!ticket.is_duplicate());
    /// # }
    /// ```
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.outcome, Admission::Duplicate(_))
    }
}
