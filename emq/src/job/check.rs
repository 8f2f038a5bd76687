//! What generated code expects of the types in a job function.
//!
//! The macro names each type once more as `<T as Payload>::CHECK`, at the user's own tokens. So a type that doesn't fit
//! is one error at that type, in the words below.

use serde::{Serialize, de::DeserializeOwned};

use super::Job;
use crate::inject::{JobContext, State};

/// A type that can be a field of a payload.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored in a job's payload",
    label = "needs `Serialize`, `Deserialize` and `Send`",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`; if it is the worker's data, take it as `State<{Self}>`, or mark the parameter `#[inject]`"
)]
pub trait Payload {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Payload for T {}

/// A struct with `#[derive(Job)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored as a job",
    label = "needs `Serialize`, `Deserialize` and `Send`",
    note = "derive `serde::Serialize` and `serde::Deserialize` beside `Job`"
)]
pub trait StoredStruct {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> StoredStruct for T {}

/// A type that stands behind `#[payload]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the `#[payload]` of a job, since it is not a job itself",
    label = "needs `#[derive(Job)]`",
    note = "write `#[derive(Serialize, Deserialize, Job)]` on `{Self}`, or remove `#[payload]` to make the parameter a field"
)]
pub trait WholePayload {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

#[diagnostic::do_not_recommend]
impl<T: Job> WholePayload for T {}

/// The type that is injected because it is called `JobContext`.
#[diagnostic::on_unimplemented(
    message = "a parameter called `JobContext` is injected, but this is not `emq::JobContext`",
    label = "another type of this name",
    note = "use `emq::JobContext`, or give this type another name with `use .. as ..` to store it in the payload"
)]
pub trait OurJobContext {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

impl OurJobContext for JobContext {}

/// A type that is injected because it is called `State`.
#[diagnostic::on_unimplemented(
    message = "a parameter called `State<_>` is injected, but this is not `emq::State`",
    label = "another type of this name",
    note = "use `emq::State`; mark the parameter `#[inject]` if this type implements `emq::inject::FromContext`, or give it another name with `use .. as ..` to store it in the payload"
)]
pub trait OurState {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

impl<T> OurState for State<T> {}
