//! What a job function is given besides its payload: the context of the run and the worker's state.

mod context;
mod report;
mod state;

use std::sync::Arc;

pub(crate) use self::{context::ContextParts, report::Reporter};
pub use self::{
    context::JobContext,
    report::{ReportError, Reports},
    state::{FromRef, State},
};
use crate::job::JobError;

/// What a run has at hand for the function's injected parameters: the job's context and the worker's state.
///
/// # Examples
///
/// ```
/// use emq::{JobContext, inject::Scope};
///
/// let scope = Scope::new(JobContext::for_test(), "the worker's state");
/// assert_eq!(*scope.state(), "the worker's state");
/// ```
#[derive(Debug)]
pub struct Scope<S> {
    context: JobContext,
    state: Arc<S>,
}

impl<S> Scope<S> {
    /// A scope of its own, for a test that calls [`Handler::run`](crate::Handler::run) by hand.
    ///
    /// ```
    /// let scope = emq::inject::Scope::new(emq::JobContext::for_test(), ());
    /// assert_eq!(scope.context().fence(), 1);
    /// ```
    pub fn new(context: JobContext, state: S) -> Self {
        Self::shared(context, Arc::new(state))
    }

    pub(crate) fn shared(context: JobContext, state: Arc<S>) -> Self {
        Self { context, state }
    }

    /// The context of this run.
    ///
    /// ```
    /// let scope = emq::inject::Scope::new(emq::JobContext::for_test(), ());
    /// assert_eq!(scope.context().queue(), "test");
    /// ```
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// The worker's state.
    ///
    /// ```
    /// let scope = emq::inject::Scope::new(emq::JobContext::for_test(), 7);
    /// assert_eq!(*scope.state(), 7);
    /// ```
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }
}

impl<S> Clone for Scope<S> {
    fn clone(&self) -> Self {
        Self { context: self.context.clone(), state: Arc::clone(&self.state) }
    }
}

/// A type that a job function can take as a parameter marked `#[inject]`.
///
/// [`JobContext`] and [`State`] need no mark. Implement it for what your functions need of a run and of the worker's
/// state `S`.
///
/// # Examples
///
/// ```
/// use emq::{JobError, inject::{FromContext, Scope}};
///
/// /// The tenant that the producer put into the job's headers.
/// struct Tenant(String);
///
/// impl<S> FromContext<S> for Tenant {
///     fn from_context(scope: &Scope<S>) -> Result<Self, JobError> {
///         let tenant = scope.context().header("tenant");
///         tenant.map(|name| Self(name.to_owned())).ok_or_else(|| JobError::permanent("the header `tenant` is missing"))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be injected into a job",
    label = "not something a worker can provide",
    note = "take the worker's data as `State<T>`, or implement `FromContext<S>` for this type"
)]
pub trait FromContext<S>: Sized {
    /// Takes the value from the run.
    ///
    /// # Errors
    ///
    /// A [`JobError`] that the run ends with instead of calling the function.
    fn from_context(scope: &Scope<S>) -> Result<Self, JobError>;
}
