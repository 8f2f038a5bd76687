use super::{FromContext, Scope};
use crate::job::JobError;

/// The worker's state, or a part of it, as a parameter of a job function.
///
/// The worker gets its state with [`WorkerBuilder::state`](crate::WorkerBuilder::state). A function may ask for the
/// whole of it, or for a part that implements [`FromRef`]; a worker whose state doesn't provide the part doesn't
/// compile.
///
/// # Examples
///
/// ```
/// use emq::State;
///
/// #[derive(Clone)]
/// struct Mailer;
///
/// async fn send(to: String, State(mailer): State<Mailer>) {
///     let _ = (to, mailer);
/// }
/// # let _ = send("a@example.org".into(), State(Mailer));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State<T>(pub T);

/// A part of a worker's state: how to get it from the whole.
///
/// Every state that is `Clone` is a part of itself.
///
/// # Examples
///
/// ```
/// use emq::FromRef;
///
/// #[derive(Clone)]
/// struct Mailer;
///
/// struct App {
///     mailer: Mailer,
/// }
///
/// impl FromRef<App> for Mailer {
///     fn from_ref(app: &App) -> Self {
///         app.mailer.clone()
///     }
/// }
/// # let _ = Mailer::from_ref(&App { mailer: Mailer });
/// ```
#[diagnostic::on_unimplemented(
    message = "the worker's state `{S}` does not provide `{Self}`, which a job takes as `State<{Self}>`",
    label = "the worker's state is `{S}`",
    note = "give the worker that state, which has to be `Clone`, with `.state(..)` before `.register::<..>()`, or implement `FromRef<{S}>` for `{Self}`"
)]
pub trait FromRef<S> {
    /// Takes the part out of the whole, usually by a cheap clone.
    fn from_ref(state: &S) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Clone> FromRef<T> for T {
    fn from_ref(state: &T) -> Self {
        state.clone()
    }
}

impl<S, T: FromRef<S>> FromContext<S> for State<T> {
    fn from_context(scope: &Scope<S>) -> Result<Self, JobError> {
        Ok(Self(T::from_ref(scope.state())))
    }
}
