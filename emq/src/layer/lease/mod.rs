mod held;
mod keeper;
mod renewals;
mod state;

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use pin_project_lite::pin_project;
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
        // Before the call: what runs below must not begin without its lease being kept.
        let kept = self.keeper.keep(&delivery);
        Keeping { run: Some(self.inner.call(delivery.clone())), delivery, kept: Some(kept), lost: None }
    }
}

pin_project! {
    /// The response of a [`KeepLease`].
    pub struct Keeping<F> {
        #[pin]
        run: Option<F>,
        delivery: Delivery,
        // Dropped, it ends the renewing: also when this future is dropped.
        kept: Option<Kept>,
        // Made when it is waited for: most runs are over before.
        lost: Option<BoxFuture<'static, ()>>,
    }
}

impl<F> fmt::Debug for Keeping<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").field("delivery", &self.delivery).finish_non_exhaustive()
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
        let lease = this.delivery.lease_state();
        if !lease.lost().is_closed() {
            // From the settling on, it isn't lost any more.
            if lease.is_settling() {
                return Poll::Pending;
            }
            let lost = this.lost.get_or_insert_with(|| Box::pin(lost(this.delivery.clone())));
            std::task::ready!(lost.as_mut().poll(cx));
        }
        this.delivery.give_up();
        // Dropped now and not with this future: the handler must have stopped when the loss is reported.
        this.run.set(None);
        this.kept.take();
        Poll::Ready(Ok(Ended::Lost))
    }
}

async fn lost(delivery: Delivery) {
    delivery.lease_state().lost().closed().await;
}

#[cfg(test)]
mod tests;
