//! emq
pub mod inject;
pub mod layer;
#[cfg(feature = "testing")]
pub mod testing;

mod client;
mod job;
mod maintain;
mod queue;
mod store;
mod worker;

pub use client::{
    Client, ClientBuilder, Draft, Enqueue, EnqueueError, EnqueueMany, EnqueueManyError, Enqueued, IntoDraft, Ticket,
};
#[cfg(feature = "macros")]
pub use emq_macros::{Job, job};
pub use inject::{FromRef, JobContext, State};
pub use job::{
    Backoff, BoxError, Completion, DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, DEFAULT_RETENTION, Handler, IdError,
    IntoOutcome, Job, JobError, JobErrorKind, JobId, JobOptions, MAX_NAME_LEN, NameError, QueueName,
};
pub use queue::{Claimer, DEFAULT_LEASE, DEFAULT_MAX_STALLED, Queue};
pub use store::{
    Batch, CallError, Claimed, ConnectError, Counts, Extended, JobState, Keep, Lease, Listed, Place, Promoted, Reaped,
    Removed, Revived, Settled, Stored, Trimmed,
};
pub use worker::{
    BuildError, BuildProblem, DEFAULT_BEAT, DEFAULT_CONCURRENCY, DEFAULT_GRACE, RunError, Stats, Worker, WorkerBuilder,
    WorkerHandle, shutdown_signal,
};

#[doc(hidden)]
pub mod __private {
    //! What generated code uses. Not part of the public interface.
    pub use crate::job::{
        check::{OurJobContext, OurState, Payload, StoredStruct, WholePayload},
        codec::{Codec, NoWire, Wire},
        unique_key_of,
    };
    pub use serde;
    pub use std::string::String;
}
