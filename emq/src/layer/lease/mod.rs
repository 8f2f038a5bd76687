mod held;
mod keeper;
mod renewals;
mod state;

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{Layer, Service};

use self::held::Kept;
pub use self::keeper::LeaseKeeper;
pub(crate) use self::{
    keeper::Stuck,
    state::{Due, LeaseState},
};
use super::{Delivery, Ended};

/// Keeps the lease of a job alive while anything below runs. When it is lost, what runs below is dropped and nothing is
/// written: somebody else has the job, or will have it.
///
/// The renewing is done by a [`LeaseKeeper`], on a thread of its own.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: emq::Client) -> Result<(), emq::ConnectError> {
/// use emq::{BoxError, Completion, layer::{DeadLetterLayer, Delivery, LeaseKeeper, LeaseLayer, RetryLayer, SettleLayer}};
/// use tower::ServiceBuilder;
///
/// let keeper = LeaseKeeper::start(&client).await?;
/// let service = ServiceBuilder::new()
///     .layer(LeaseLayer::new(&keeper))
///     .layer(SettleLayer::new(&client))
///     .layer(DeadLetterLayer::new())
///     .layer(RetryLayer::new())
///     .service_fn(|_: Delivery| async { Ok::<_, BoxError>(Completion::empty()) });
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct LeaseLayer {
    keeper: LeaseKeeper,
}

impl LeaseLayer {
    /// The layer whose leases this keeper renews.
    ///
    /// ```no_run
    /// # async fn example(client: emq::Client) -> Result<(), emq::ConnectError> {
    /// use emq::layer::{LeaseKeeper, LeaseLayer};
    ///
    /// let layer = LeaseLayer::new(&LeaseKeeper::start(&client).await?);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn new(keeper: &LeaseKeeper) -> Self {
        Self { keeper: keeper.clone() }
    }
}

impl<S> Layer<S> for LeaseLayer {
    type Service = KeepLease<S>;

    fn layer(&self, inner: S) -> KeepLease<S> {
        KeepLease { inner, keeper: self.keeper.clone() }
    }
}

/// The service of a [`LeaseLayer`].
#[derive(Clone, Debug)]
pub struct KeepLease<S> {
    inner: S,
    keeper: LeaseKeeper,
}

impl<S> Service<Delivery> for KeepLease<S>
where
    S: Service<Delivery, Response = Ended, Error = Infallible>,
{
    type Response = Ended;
    type Error = Infallible;
    type Future = Keeping<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Keeping<S::Future> {
        let cancel = delivery.cancel().clone();
        let lost = delivery.lease_state().lost().clone().cancelled_owned();
        // Before the call: what runs below must not begin without its lease being kept.
        let kept = self.keeper.keep(&delivery);
        Keeping { run: Some(self.inner.call(delivery)), lost, cancel, kept: Some(kept) }
    }
}

pin_project! {
    /// The response of a [`KeepLease`].
    #[derive(Debug)]
    pub struct Keeping<F> {
        #[pin]
        run: Option<F>,
        #[pin]
        lost: WaitForCancellationFutureOwned,
        cancel: CancellationToken,
        // Dropped, it ends the renewing: also when this future is dropped.
        kept: Option<Kept>,
    }
}

impl<F: Future<Output = Result<Ended, Infallible>>> Future for Keeping<F> {
    type Output = Result<Ended, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(run) = this.run.as_mut().as_pin_mut()
            && let Poll::Ready(ended) = run.poll(cx)
        {
            this.kept.take();
            return Poll::Ready(ended);
        }
        std::task::ready!(this.lost.poll(cx));
        this.cancel.cancel();
        // Dropped now and not with this future: the handler must have stopped when the loss is reported.
        this.run.set(None);
        this.kept.take();
        Poll::Ready(Ok(Ended::Lost))
    }
}

#[cfg(test)]
mod tests;
