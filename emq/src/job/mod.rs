//! What a job is: its type, its options, how it fails and what it leaves behind.
//!
//! Nothing here knows the server, the client library or the async runtime: a crate that only defines jobs depends on
//! these types alone, and they change rarely.

mod backoff;
pub(crate) mod check;
pub(crate) mod codec;
mod error;
mod id;
mod name;
mod options;
mod outcome;
mod unique;

use serde::{Serialize, de::DeserializeOwned};

#[doc(hidden)]
pub use self::unique::unique_key_of;
pub use self::{
    backoff::Backoff,
    error::{BoxError, JobError, JobErrorKind},
    id::{IdError, JobId},
    name::{MAX_NAME_LEN, NameError, QueueName},
    options::{DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, DEFAULT_RETENTION, JobOptions},
    outcome::{Completion, IntoOutcome},
    unique::Unique,
};
pub(crate) use self::{error::error_text, id::Minted, name::LaneName};
use crate::recurring::Recurrence;

/// A typed job: what a producer needs in order to enqueue it.
///
/// [`#[job]`](macro@crate::job) and [`#[derive(Job)]`](macro@crate::Job) implement it. The payload is stored as JSON,
/// so a field that is added later needs `#[serde(default)]` for the jobs that are already waiting.
///
/// # Examples
///
/// By hand, for a job whose struct is written out:
///
/// ```
/// use emq::{Job, JobOptions};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Job for SendEmail {
///     const NAME: &'static str = "send_email";
///     const OPTIONS: JobOptions = JobOptions::new().queue("mail").max_attempts(5);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "not a job",
    note = "write `#[job]` on an async function and use the struct it makes (`enroll` makes `EnrollJob`), or `#[derive(Job)]` on a struct"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name that stands on the wire and that a worker finds the handler by.
    const NAME: &'static str;

    /// Names this job had before and still answers to. Empty by default.
    const ALIASES: &'static [&'static str] = &[];

    /// Queue, attempts, backoff and so on; what an enqueue doesn't say itself.
    const OPTIONS: JobOptions = JobOptions::new();

    /// `file:line:column` of the definition, for errors that have to point at it. Empty if unknown.
    const LOCATION: &'static str = "";

    /// When a worker that registers this job has it run by itself; never by default.
    ///
    /// Nobody gives such a job its payload: it is what `{}` decodes to. The worker registers it in the job's queue, if it
    /// serves that, under the job's name. docs/scheduling.md has the rules.
    fn recurrence() -> Option<Recurrence>
    where
        Self: Sized,
    {
        None
    }

    /// The deduplication key of this job, if it has one: while a job with this key is unfinished, another enqueue is
    /// answered [`Duplicate`](crate::Admission::Duplicate).
    fn unique_key(&self) -> Option<String> {
        None
    }

    /// The same with its rules, for a key that is held in another way; what [`unique_key`](Self::unique_key) says unless this
    /// is written, too.
    fn unique(&self) -> Option<Unique> {
        self.unique_key().map(Unique::key)
    }
}

/// A job whose result has a known type, so that it can be waited for.
///
/// [`#[job]`](macro@crate::job) implements it for the struct it makes: `Output` is the `T` of the function's
/// `Result<T, E>`. For a struct with [`#[derive(Job)]`](macro@crate::Job), whose function is elsewhere, write it out.
///
/// # Examples
///
/// ```
/// use emq::{Job, Returns};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Job)]
/// struct Enroll {
///     student: u64,
/// }
///
/// /// The number of the seat.
/// impl Returns for Enroll {
///     type Output = u32;
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the type of the result of `{Self}` isn't known",
    label = "no `Returns` for this job",
    note = "write `impl emq::Returns for {Self} {{ type Output = ..; }}`, or use the struct that `#[job]` makes of a function"
)]
pub trait Returns: Job {
    /// What a run that is done leaves behind.
    type Output;
}

/// A job that a worker with the state `S` can run.
///
/// [`#[job]`](macro@crate::job) implements it for every `S` that provides what the function's `State<_>` parameters
/// ask for.
///
/// # Examples
///
/// By hand:
///
/// ```
/// use emq::{Completion, Handler, Job, JobError, inject::Scope};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Job for Greet {
///     const NAME: &'static str = "greet";
/// }
///
/// impl<S: Send + Sync + 'static> Handler<S> for Greet {
///     async fn run(self, _scope: Scope<S>) -> Result<Completion, JobError> {
///         println!("hello, {}", self.name);
///         Ok(Completion::empty())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be run by a worker whose state is `{S}`",
    label = "no handler for this job and this state",
    note = "register the struct that `#[job]` makes of the function (`send` makes `SendJob`), also where the function takes `{Self}` as `#[payload]`"
)]
pub trait Handler<S>: Job {
    /// Runs the job once.
    ///
    /// # Errors
    ///
    /// Whatever the job's function answers; the worker turns it into a retry, a dead letter or what else the
    /// [`JobError`] asks for.
    ///
    /// # Cancel safety
    ///
    /// The worker drops this future when the lease is lost, the timeout is over, the job is cancelled or the grace time of
    /// a shutdown has passed: a job must bear to be stopped at any `await` and run again.
    fn run(self, scope: crate::inject::Scope<S>)
    -> impl Future<Output = Result<Completion, JobError>> + Send + 'static;
}

/// Encodes a payload.
pub(crate) fn encode<J: Job>(job: &J) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(job)
}

/// Decodes a payload. The error names the place of the fault, and nothing of the content: it is kept with the job.
pub(crate) fn decode<J: Job>(payload: &[u8]) -> Result<J, JobError> {
    serde_json::from_slice(payload)
        .map_err(|error| JobError::permanent(format!("the payload can't be decoded as `{}`: {error}", J::NAME)))
}
