use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::{Declined, Delivery, Outcome};

/// Makes a dead letter of what [`RetryLayer`](super::RetryLayer) declined. It decides, and writes nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use emq::{BoxError, Completion, JobError, layer::{DeadLetterLayer, Delivery, Outcome, RetryLayer}, testing};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let service = ServiceBuilder::new()
///     .layer(DeadLetterLayer::new())
///     .layer(RetryLayer::new())
///     .service_fn(|_: Delivery| async { Err::<Completion, BoxError>(JobError::permanent("no such student").into()) });
/// let outcome = service.oneshot(testing::delivery("enroll")).await.unwrap();
/// assert_eq!(outcome, Outcome::Dead { error: "no such student".into() });
/// # }
/// ```
///
/// It accepts nothing but what a retry layer declined:
///
/// ```compile_fail
/// use emq::{BoxError, Completion, layer::{DeadLetterLayer, Delivery}, testing};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # async fn example() {
/// let service = ServiceBuilder::new()
///     .layer(DeadLetterLayer::new())
///     .service_fn(|_: Delivery| async { Ok::<_, BoxError>(Completion::empty()) });
/// service.oneshot(testing::delivery("enroll")).await;
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DeadLetterLayer(());

impl DeadLetterLayer {
    /// The layer.
    ///
    /// ```
    /// let layer = emq::layer::DeadLetterLayer::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for DeadLetterLayer {
    type Service = DeadLetter<S>;

    fn layer(&self, inner: S) -> DeadLetter<S> {
        DeadLetter { inner, declined: None }
    }
}

/// The service of a [`DeadLetterLayer`].
#[derive(Debug)]
pub struct DeadLetter<S> {
    inner: S,
    /// The next job is buried for this: the inner service failed to get ready.
    declined: Option<Declined>,
}

impl<S> Service<Delivery> for DeadLetter<S>
where
    S: Service<Delivery, Response = Outcome, Error = Declined>,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Burying<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.declined.is_none()
            && let Err(declined) = ready!(self.inner.poll_ready(cx))
        {
            self.declined = Some(declined);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Burying<S::Future> {
        match self.declined.take() {
            Some(declined) => Burying { run: None, declined: Some(declined) },
            None => Burying { run: Some(self.inner.call(delivery)), declined: None },
        }
    }
}

pin_project! {
    /// The response of a [`DeadLetter`].
    #[derive(Debug)]
    pub struct Burying<F> {
        #[pin]
        run: Option<F>,
        declined: Option<Declined>,
    }
}

impl<F: Future<Output = Result<Outcome, Declined>>> Future for Burying<F> {
    type Output = Result<Outcome, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match (this.declined.take(), this.run.as_pin_mut()) {
            (Some(declined), _) => Err(declined),
            (None, Some(run)) => ready!(run.poll(cx)),
            (None, None) => return Poll::Pending,
        };
        Poll::Ready(Ok(result.unwrap_or_else(|declined| Outcome::Dead { error: declined.into_text() })))
    }
}
