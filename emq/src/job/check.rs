//! What generated code expects of the types in a job function.
//!
//! The macro uses each type through one of these traits, at the user's own tokens. So a type that doesn't fit is one error
//! at that type, in the words below.

use serde::{Deserializer, Serialize, Serializer, de::DeserializeOwned};

use super::{Job, JobOptions, Unique};
use crate::inject::{FromRef, JobContext, Scope, State};

/// A type that can be a field of a payload.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored in a job's payload",
    label = "needs `Serialize` and `Deserialize`",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`; if it is the worker's data, take it as `State<{Self}>`, or mark the parameter `#[inject]`"
)]
pub trait Payload {
    /// Exists for the types that fit.
    const CHECK: () = ();
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Payload for T {}

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

/// A type that stands behind `#[payload]`, and what the newtype around it takes from it.
///
/// All of it goes through this one trait, so that a type that is no job is one error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the `#[payload]` of a job, since it is not a job itself",
    label = "needs `#[derive(Job)]`",
    note = "write `#[derive(Serialize, Deserialize, Job)]` on `{Self}`, or remove `#[payload]` to make the parameter a field"
)]
pub trait WholePayload: Sized {
    /// Its name.
    const NAME: &'static str;
    /// Its earlier names.
    const ALIASES: &'static [&'static str];
    /// Its options.
    const OPTIONS: JobOptions;

    /// Its deduplication key.
    fn unique_key(&self) -> Option<String>;

    /// The same with its rules.
    fn unique(&self) -> Option<Unique>;

    /// Serializes it.
    fn encode<E: Serializer>(&self, encoder: E) -> Result<E::Ok, E::Error>;

    /// Deserializes it.
    fn decode<'de, D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Job> WholePayload for T {
    const NAME: &'static str = <T as Job>::NAME;
    const ALIASES: &'static [&'static str] = <T as Job>::ALIASES;
    const OPTIONS: JobOptions = <T as Job>::OPTIONS;

    fn unique_key(&self) -> Option<String> {
        Job::unique_key(self)
    }

    fn unique(&self) -> Option<Unique> {
        Job::unique(self)
    }

    fn encode<E: Serializer>(&self, encoder: E) -> Result<E::Ok, E::Error> {
        self.serialize(encoder)
    }

    fn decode<'de, D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        T::deserialize(decoder)
    }
}

/// The type of the result that a function's return type has in it.
///
/// Apart from `IntoOutcome`, and for any `T` and `E`: so a return type that doesn't fit is one error.
pub trait ResultOf {
    /// `()`, or the `T` of `Result<T, E>`.
    type Type;
}

impl ResultOf for () {
    type Type = ();
}

impl<T, E> ResultOf for Result<T, E> {
    type Type = T;
}

/// The type that is injected because it is called `JobContext`.
#[diagnostic::on_unimplemented(
    message = "a parameter called `JobContext` is injected, but this is not `emq::JobContext`",
    label = "another type of this name",
    note = "use `emq::JobContext`, or give this type another name with `use .. as ..` to store it in the payload"
)]
pub trait OurJobContext {
    /// Takes it from the run.
    fn of<S>(scope: &Scope<S>) -> Self;
}

impl OurJobContext for JobContext {
    fn of<S>(scope: &Scope<S>) -> Self {
        scope.context().clone()
    }
}

/// A type that is injected because it is called `State`.
#[diagnostic::on_unimplemented(
    message = "a parameter called `State<_>` is injected, but this is not `emq::State`",
    label = "another type of this name",
    note = "use `emq::State`; mark the parameter `#[inject]` if this type implements `emq::inject::FromContext`, or give it another name with `use .. as ..` to store it in the payload"
)]
pub trait OurState<S> {
    /// Takes it from the worker's state.
    fn of(scope: &Scope<S>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<S, T: FromRef<S>> OurState<S> for State<T> {
    fn of(scope: &Scope<S>) -> Self {
        Self(T::from_ref(scope.state()))
    }
}
