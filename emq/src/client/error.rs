use crate::{
    client::Ticket,
    job::{JobId, NameError},
    store::CallError,
};

/// Why a job wasn't enqueued.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, job: SendEmailJob) {
/// use emq::EnqueueError;
///
/// match client.enqueue(job).await {
///     Ok(ticket) => println!("{}", ticket.id()),
///     Err(EnqueueError::TooLarge { size, limit }) => println!("{size} bytes; keep it under {limit}, or store it elsewhere"),
///     // It may or may not be in the queue. Sending it again under the same id is safe.
///     Err(EnqueueError::Call { id, .. }) => println!("enqueue it again with .id({id})"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The payload or a header can't be encoded as JSON.
    #[error("the payload can't be encoded as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The payload and the headers are larger than the client allows.
    #[error(
        "the payload has {size} bytes with its headers, and the limit is {limit}; store it elsewhere and enqueue where it is, or raise `max_payload`"
    )]
    TooLarge {
        /// Encoded, in bytes.
        size: usize,
        /// In bytes.
        limit: usize,
    },
    /// The queue's name can't be one.
    #[error(transparent)]
    Queue(#[from] NameError),
    /// The group's name can't be one.
    #[error(transparent)]
    Group(NameError),
    /// A job with this id is in the queue already, with another payload.
    #[error("the job {id} is in the queue already, with another payload; an id belongs to one job")]
    Conflict {
        /// The id.
        id: JobId,
    },
    /// The server didn't carry it out, or didn't say whether it did. Enqueuing the same job with this id again is safe.
    #[error("the job {id} may not have been enqueued: {source}")]
    Call {
        /// The id it was sent with.
        id: JobId,
        /// What went wrong.
        #[source]
        source: CallError,
    },
}

/// Some jobs of an [`enqueue_many`](crate::Client::enqueue_many) weren't enqueued; which, and why.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// # async fn example(client: emq::Client, jobs: Vec<SendEmailJob>) {
/// if let Err(error) = client.enqueue_many(jobs).await {
///     for (position, outcome) in error.outcomes.iter().enumerate() {
///         if let Err(error) = outcome {
///             println!("job {position}: {error}");
///         }
///     }
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {} jobs weren't enqueued; the first: {first}", outcomes.len())]
#[non_exhaustive]
pub struct EnqueueManyError {
    /// One outcome per job, in the order of the jobs.
    pub outcomes: Vec<Result<Ticket, EnqueueError>>,
    /// How many of them are errors.
    pub failed: usize,
    first: String,
}

impl EnqueueManyError {
    /// The tickets if every outcome is one, else the error.
    pub(super) fn check(outcomes: Vec<Result<Ticket, EnqueueError>>) -> Result<Vec<Ticket>, Self> {
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        match outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
            None => Ok(outcomes.into_iter().flatten().collect()),
            Some(first) => Err(Self { first: first.to_string(), outcomes, failed }),
        }
    }
}
