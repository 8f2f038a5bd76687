#![doc = include_str!("../docs/crate.md")]

pub mod inject;
pub mod layer;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;

mod client;
mod clock;
mod give_way;
mod job;
mod latch;
mod partition;
mod queue;
mod recurring;
mod store;
mod worker;

pub use client::{
    Admission, Client, ClientBuilder, Draft, Enqueue, EnqueueError, EnqueueMany, EnqueueManyError, EventsError,
    IntoDraft, Ticket,
};
pub use inject::{FromRef, JobContext, State};
pub use job::{
    Backoff, BoxError, Completion, DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, DEFAULT_RETENTION, Handler, IdError,
    IntoOutcome, Job, JobError, JobErrorKind, JobId, JobOptions, MAX_NAME_LEN, NameError, QueueName, Returns, Unique,
};
pub use partition::{LimitError, MAX_PARTITIONS, Partitioned};
pub use queue::{
    Claimer, DEFAULT_LEASE, DEFAULT_MAX_STALLED, Event, Events, JobResult, Lane, Purge, PurgeError, Purged, Queue,
    ResultError, Update, UpdateError, WaitError,
};
pub use recurring::{
    MAX_BACKFILL, MISSED_AFTER, Missed, Overlap, Recurrence, Recurring, RecurringError, RecurringJob, Schedule,
    ScheduleError, Upsert,
};
pub use store::{
    Batch, CallError, Cancelled, Claimed, ConnectError, Counts, Durability, Extended, JobState, Keep, LaneDrained,
    LaneState, Lease, Limits, Listed, ListedLane, MAX_LOG_LINES, Place, Promoted, Rate, Reaped, Reassigned, Removed,
    Revived, Settled, Stored, Trimmed, Updated, Upserted,
};
pub use worker::{
    BuildError, BuildProblem, DEFAULT_BEAT, DEFAULT_CONCURRENCY, DEFAULT_GRACE, RunError, Stats, Worker, WorkerBuilder,
    WorkerHandle, shutdown_signal,
};

#[doc(hidden)]
pub mod __private {
    //! What generated code uses. Not part of the public interface.
    pub use crate::job::{
        check::{OurJobContext, OurState, Payload, ResultOf, StoredStruct, WholePayload},
        codec::{Codec, NoWire, Wire},
        unique_key_of,
    };
    pub use serde;
    pub use std::string::String;
}
#[cfg(feature = "macros")]
#[doc = include_str!("../docs/job_attribute.md")]
pub use emq_macros::job;

/// Makes a struct a job whose handler is elsewhere, with the options of [`#[job]`](macro@job).
///
/// The struct has named fields or none, no type parameters, and derives serde's `Serialize` and `Deserialize` itself. The
/// handler takes it as `#[payload]`: see [A struct of another crate](macro@job#a-struct-of-another-crate).
///
/// # Examples
///
/// ```
/// use emq::{DEFAULT_QUEUE, Job};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(name = "email.send", unique = to)]
/// pub struct SendEmail {
///     to: String,
/// }
///
/// assert_eq!((SendEmail::NAME, SendEmail::OPTIONS.queue), ("email.send", DEFAULT_QUEUE));
/// ```
#[cfg(feature = "macros")]
pub use emq_macros::Job;

/// What docs/uniqueness.md shows has to compile.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../docs/uniqueness.md")]
struct Uniqueness;

/// What docs/scheduling.md shows has to compile.
#[cfg(all(doctest, feature = "cron"))]
#[doc = include_str!("../docs/scheduling.md")]
pub struct Scheduling;

/// The program of the README has to compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// And that of the document about partitions.
#[cfg(doctest)]
#[doc = include_str!("../docs/scaling.md")]
pub struct Scaling;

/// And that of the document about fairness.
#[cfg(doctest)]
#[doc = include_str!("../docs/fairness.md")]
pub struct Fairness;
