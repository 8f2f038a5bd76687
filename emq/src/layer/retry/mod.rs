mod policy;

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use self::policy::Attempt;
use super::{Declined, Delivery, Outcome, catch_panic::caught};
use crate::job::{BoxError, Completion, JobError};

/// Decides what becomes of a run: done, to run again, or declined. It writes nothing.
///
/// A failure is retried after the job's backoff while it has attempts left. The job's [`JobError`] may say otherwise:
/// permanent, retried after a wait of its own, snoozed, discarded.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use emq::{BoxError, Completion, layer::{Delivery, Outcome, RetryLayer}, testing};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let service = ServiceBuilder::new()
///     .layer(RetryLayer::new())
///     .service_fn(|_: Delivery| async { Err::<Completion, BoxError>("reset by peer".into()) });
/// let outcome = service.oneshot(testing::delivery("enroll")).await.unwrap();
/// assert!(matches!(outcome, Outcome::Retry { error, .. } if error == "reset by peer"));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryLayer(());

impl RetryLayer {
    /// The layer.
    ///
    /// ```
    /// let layer = emq::layer::RetryLayer::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry { inner, not_ready: None }
    }
}

/// The service of a [`RetryLayer`].
#[derive(Debug)]
pub struct Retry<S> {
    inner: S,
    /// Why the inner service can't take the next job: that job's failure, since from here outwards nothing else fails.
    not_ready: Option<BoxError>,
}

impl<S> Service<Delivery> for Retry<S>
where
    S: Service<Delivery, Response = Completion>,
    S::Error: Into<BoxError>,
{
    type Response = Outcome;
    type Error = Declined;
    type Future = Deciding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Declined>> {
        if self.not_ready.is_none()
            && let Err(error) = ready!(self.inner.poll_ready(cx))
        {
            self.not_ready = Some(error.into());
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Deciding<S::Future> {
        let attempt = Attempt::of(&delivery);
        match self.not_ready.take() {
            Some(error) => Deciding { run: None, failed: Some(error), attempt },
            None => Deciding { run: Some(self.inner.call(delivery)), failed: None, attempt },
        }
    }
}

/// What becomes of a job whose run ended with this error, in a place where there is no run to be asked.
pub(super) fn outcome_of_failure(delivery: &Delivery, error: JobError) -> Outcome {
    let decided = Attempt::of(delivery).decide(Err(error), rand::random());
    decided.unwrap_or_else(|declined| Outcome::Dead { error: declined.into_text() })
}

pin_project! {
    /// The response of a [`Retry`].
    #[derive(Debug)]
    pub struct Deciding<F> {
        #[pin]
        run: Option<F>,
        failed: Option<BoxError>,
        attempt: Attempt,
    }
}

impl<F, E> Future for Deciding<F>
where
    F: Future<Output = Result<Completion, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Outcome, Declined>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match (this.failed.take(), this.run.as_pin_mut()) {
            (Some(error), _) => Err(error),
            (None, Some(run)) => ready!(run.poll(cx)).map_err(Into::into),
            (None, None) => return Poll::Pending,
        };
        let (attempt, chance) = (*this.attempt, rand::random());
        let decided = caught(|| attempt.decide(result.map_err(JobError::from_box), chance));
        // The error is the job's own type: its text, its source or its `Drop` may panic.
        Poll::Ready(decided.unwrap_or_else(|panicked| attempt.decide(Err(JobError::new(panicked)), chance)))
    }
}
