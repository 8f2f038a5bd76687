use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service};

use super::{Delivery, Ended, Outcome};
use crate::{
    client::Client,
    latch::Latch,
    store::{CallError, Done, Settled, Store},
};

/// The wait between two tries to settle.
const PAUSE: Duration = Duration::from_millis(200);

/// Writes what was decided, as one transition under the run's token: the only layer that writes.
///
/// A settle that can't reach the server is tried again until the lease would end; the handler doesn't run again for that.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: emq::Client, delivery: emq::layer::Delivery) {
/// use emq::{BoxError, Completion, layer::{DeadLetterLayer, Delivery, RetryLayer, SettleLayer}};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let service = ServiceBuilder::new()
///     .layer(SettleLayer::new(&client))
///     .layer(DeadLetterLayer::new())
///     .layer(RetryLayer::new())
///     .service_fn(|_: Delivery| async { Ok::<_, BoxError>(Completion::empty()) });
/// let ended = service.oneshot(delivery).await;
/// # }
/// ```
///
/// It accepts only outcomes, and nothing that can fail:
///
/// ```compile_fail
/// use emq::{BoxError, Completion, layer::{Delivery, RetryLayer, SettleLayer}};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # async fn example(client: emq::Client, delivery: Delivery) {
/// let service = ServiceBuilder::new()
///     .layer(SettleLayer::new(&client))
///     .layer(RetryLayer::new())
///     .service_fn(|_: Delivery| async { Ok::<_, BoxError>(Completion::empty()) });
/// service.oneshot(delivery).await;
/// # }
/// ```
#[derive(Clone)]
pub struct SettleLayer {
    writer: Arc<dyn Writer>,
    give_back: Arc<Latch>,
}

impl fmt::Debug for SettleLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleLayer").finish_non_exhaustive()
    }
}

impl SettleLayer {
    /// The layer that settles through this client.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client) {
    /// let layer = emq::layer::SettleLayer::new(&client);
    /// # }
    /// ```
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self::with(Arc::new(client.clone()), Arc::default())
    }

    /// `give_back`: once closed, runs are dropped and their jobs released.
    pub(crate) fn with(writer: Arc<dyn Writer>, give_back: Arc<Latch>) -> Self {
        Self { writer, give_back }
    }
}

impl<S> Layer<S> for SettleLayer {
    type Service = Settle<S>;

    fn layer(&self, inner: S) -> Settle<S> {
        Settle { inner, writer: Arc::clone(&self.writer), give_back: Arc::clone(&self.give_back) }
    }
}

/// The service of a [`SettleLayer`].
#[derive(Clone)]
pub struct Settle<S> {
    inner: S,
    writer: Arc<dyn Writer>,
    give_back: Arc<Latch>,
}

impl<S> fmt::Debug for Settle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settle").finish_non_exhaustive()
    }
}

impl<S> Service<Delivery> for Settle<S>
where
    S: Service<Delivery, Response = Outcome, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Ended;
    type Error = Infallible;
    // Boxed: it does I/O.
    type Future = BoxFuture<'static, Result<Ended, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let run = self.inner.call(delivery.clone());
        let writer = Arc::clone(&self.writer);
        let give_back = Arc::clone(&self.give_back);
        Box::pin(async move {
            let outcome = run_or_give_back(run, &give_back, &delivery).await;
            delivery.lease_state().settling();
            Ok(settle(&*writer, &delivery, outcome).await)
        })
    }
}

async fn run_or_give_back(
    run: impl Future<Output = Result<Outcome, Infallible>>,
    give_back: &Latch,
    delivery: &Delivery,
) -> Outcome {
    tokio::select! {
        // A run that is done is settled as what it is, also in the moment of a cancellation or of the shutdown.
        biased;
        outcome = run => match outcome {
            Ok(outcome) => outcome,
            Err(never) => match never {},
        },
        () = delivery.lease_state().cancelled().closed() => {
            delivery.give_up();
            Outcome::Cancelled
        }
        () = give_back.closed() => {
            delivery.give_up();
            Outcome::Release
        }
    }
    // The run is dropped here, before anything is written: nobody runs the job twice at once on our account.
}

async fn settle(writer: &dyn Writer, delivery: &Delivery, outcome: Outcome) -> Ended {
    // As it stands now: a lease that is renewed meanwhile shows that the server can be reached, and then trying for
    // longer won't help. Looked at between the tries alone: each of them ends in bounded time, and its answer may only
    // be waiting for a thread that a handler blocks.
    let deadline = delivery.lease_state().until();
    let mut is_first = true;
    loop {
        let error = match writer.write(delivery, &outcome).await {
            Ok(settled) => return Ended::Settled { outcome, settled },
            Err(error) => error,
        };
        // Once: it may be tried a hundred times until the lease ends.
        if std::mem::take(&mut is_first) {
            tracing::warn!(%error, outcome = outcome.word(), "the job can't be settled yet");
        }
        if matches!(error, CallError::Closed) || Instant::now() + PAUSE >= deadline {
            return Ended::Unsettled { outcome };
        }
        sleep(PAUSE).await;
    }
}

/// What carries an outcome out: the server, or a test's recorder.
pub(crate) trait Writer: Send + Sync {
    fn write<'a>(&'a self, delivery: &'a Delivery, outcome: &'a Outcome) -> BoxFuture<'a, Result<Settled, CallError>>;
}

impl Writer for Client {
    fn write<'a>(&'a self, delivery: &'a Delivery, outcome: &'a Outcome) -> BoxFuture<'a, Result<Settled, CallError>> {
        let store = self.store(delivery.queue().clone());
        Box::pin(async move { write(&store, delivery, outcome, |done| store.complete(done)).await })
    }
}

/// The one place where an outcome becomes a transition. `complete` says how a completion is sent.
pub(crate) fn write<'a, C>(
    store: &'a Store,
    delivery: &'a Delivery,
    outcome: &'a Outcome,
    complete: impl FnOnce(Done) -> C,
) -> BoxFuture<'a, Result<Settled, CallError>>
where
    C: Future<Output = Result<Settled, CallError>> + Send + 'a,
{
    let lease = delivery.lease();
    let retention = delivery.options().retention;
    // Boxed one by one: together they are as large as the largest, and nearly all are completions.
    match outcome {
        Outcome::Done(completion) => {
            Box::pin(complete(Done { lease, retention, result: completion.result().cloned() }))
        }
        Outcome::Discard { .. } => Box::pin(complete(Done { lease, retention, result: None })),
        Outcome::Retry { delay, error } => Box::pin(async move { store.retry(&lease, *delay, error).await }),
        Outcome::Dead { error } => Box::pin(async move { store.bury(&lease, error).await }),
        Outcome::Snooze { delay, .. } => Box::pin(async move { store.snooze(&lease, *delay).await }),
        Outcome::Hold { delay, .. } => Box::pin(async move { store.hold(&lease, *delay).await }),
        Outcome::Release => Box::pin(async move { store.release(&lease).await }),
        Outcome::Cancelled => Box::pin(async move { store.cancel_held(&lease, retention).await }),
    }
}
