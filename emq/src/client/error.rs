use crate::{
    client::Ticket,
    job::{JobId, NameError},
    store::{CallError, Durability},
};

/// Why a job wasn't enqueued, or not as it was to be.
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
///     // It is in the queue, and would be lost with its server if that died now.
///     Err(EnqueueError::NotDurable { ticket, .. }) => println!("{} is enqueued all the same", ticket.id()),
// It may or may not be in the queue. Sending it again under the same id is safe.
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
    /// The job is in the queue, and wasn't found to be as [`durable`](crate::Enqueue::durable) as asked in time. It will
    /// run; what isn't certain is that it outlives its server. Enqueuing it again with the id of the ticket is safe, and
    /// waits once more.
    #[error("the job {} is enqueued, but it isn't certain to be {wanted}: {}", ticket.id(), shortfall(*replicas, source.as_ref()))]
    NotDurable {
        /// What the enqueue would have answered.
        ticket: Ticket,
        /// What was asked for.
        wanted: Durability,
        /// How many replicas have confirmed it.
        replicas: u32,
        /// Why that isn't known for certain, unless the time was over.
        #[source]
        source: Option<CallError>,
    },
}

fn shortfall(replicas: u32, source: Option<&CallError>) -> String {
    match source {
        Some(error) => error.to_string(),
        None => format!("{replicas} have confirmed it in time"),
    }
}

/// Why the events of a queue can't be listened to.
///
/// # Examples
///
/// ```
/// fn is_my_mistake(error: &emq::EventsError) -> bool {
///     matches!(error, emq::EventsError::Queue(_))
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The queue's name can't be one.
    #[error(transparent)]
    Queue(#[from] NameError),
    /// The server can't be reached, or doesn't let this user listen.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Some jobs of an [`enqueue_many`](crate::Client::enqueue_many) weren't enqueued, or not as they were to be; which, and why.
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
#[error("{failed} of {} jobs weren't enqueued as asked; the first: {first}", outcomes.len())]
#[non_exhaustive]
pub struct EnqueueManyError {
    /// One outcome per job, in the order of the jobs; [`Ticket::typed`] gives a ticket its job's type back.
    pub outcomes: Vec<Result<Ticket, EnqueueError>>,
    /// How many of them are errors.
    pub failed: usize,
    first: String,
}

impl EnqueueManyError {
    /// The tickets if every outcome is one, else the error.
    pub(super) fn check<J>(outcomes: Vec<Result<Ticket, EnqueueError>>) -> Result<Vec<Ticket<J>>, Self> {
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        match outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
            None => Ok(outcomes.into_iter().flatten().map(Ticket::typed).collect()),
            Some(first) => Err(Self { first: first.to_string(), outcomes, failed }),
        }
    }
}
