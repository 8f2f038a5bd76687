//! emq
pub mod inject;
mod job;
pub use inject::{FromRef, JobContext, State};
pub use job::{
    Backoff, BoxError, Completion, DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, DEFAULT_RETENTION, Handler, IdError,
    IntoOutcome, Job, JobError, JobErrorKind, JobId, JobOptions, MAX_NAME_LEN, NameError, QueueName,
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
#[cfg(feature = "macros")]
pub use emq_macros::{Job, job};
