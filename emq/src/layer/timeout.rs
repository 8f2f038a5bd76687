use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer, Service};

use super::{Delivery, Due};
use crate::{clock::later, job::BoxError};

/// How long a run that is past its timeout may take to be dropped, before it is taken for one that blocks its thread.
const DROP: Duration = Duration::from_secs(1);

/// Ends a run that takes longer than its job's `timeout`: an error like any other, so the job is retried.
///
/// Jobs without a timeout pass. A function that blocks its thread can't be ended. A worker's job fails all the same: at most
/// 1 s and a third of the lease later it is written off as one that ran too long, and runs again under its next token while
/// the old run may still be at work. What that one decides is refused, and
/// [`JobContext::is_cancelled`](crate::JobContext::is_cancelled) tells it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use emq::{BoxError, Completion, JobOptions, layer::{Delivery, Elapsed, TimeoutLayer}, testing};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let service = ServiceBuilder::new()
///     .layer(TimeoutLayer::new())
///     .service_fn(|_: Delivery| std::future::pending::<Result<Completion, BoxError>>());
/// let options = JobOptions::new().timeout(Duration::from_millis(1));
/// let error = service.oneshot(testing::delivery_with("enroll", options)).await.unwrap_err();
/// assert!(error.is::<Elapsed>());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeoutLayer(());

impl TimeoutLayer {
    /// The layer.
    ///
    /// ```
    /// let layer = emq::layer::TimeoutLayer::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner }
    }
}

/// The service of a [`TimeoutLayer`].
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
}

impl<S> Service<Delivery> for Timeout<S>
where
    S: Service<Delivery>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Timed<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, delivery: Delivery) -> Timed<S::Future> {
        let limit = delivery.options().timeout.map(|limit| Limit {
            after: limit,
            sleep: Box::pin(sleep(limit)),
            due: Due::at(&delivery, later(later(Instant::now(), limit), DROP)),
        });
        Timed { inner: self.inner.call(delivery), limit }
    }
}

pin_project! {
    /// The response of a [`Timeout`].
    #[derive(Debug)]
    pub struct Timed<F> {
        #[pin]
        inner: F,
        limit: Option<Limit>,
    }
}

#[derive(Debug)]
struct Limit {
    after: Duration,
    // Boxed, since most jobs have none and a timer is large.
    sleep: Pin<Box<Sleep>>,
    due: Due,
}

impl<F, T, E> Future for Timed<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.inner.poll(cx) {
            return Poll::Ready(result.map_err(Into::into));
        }
        let Some(limit) = this.limit else { return Poll::Pending };
        std::task::ready!(limit.sleep.as_mut().poll(cx));
        limit.due.give_up();
        Poll::Ready(Err(Elapsed { after: limit.after }.into()))
    }
}

/// The error of a run that took too long.
///
/// # Examples
///
/// ```
/// # fn example(error: emq::BoxError) {
/// use emq::layer::Elapsed;
///
/// if let Some(elapsed) = error.downcast_ref::<Elapsed>() {
///     println!("{:?}", elapsed.after());
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the job ran longer than its timeout of {after:?}")]
pub struct Elapsed {
    after: Duration,
}

impl Elapsed {
    pub(super) fn new(after: Duration) -> Self {
        Self { after }
    }

    /// The timeout.
    ///
    /// ```
    /// # fn example(elapsed: emq::layer::Elapsed) {
    /// println!("{:?}", elapsed.after());
    /// # }
    /// ```
    #[must_use]
    pub fn after(&self) -> Duration {
        self.after
    }
}
