use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::Delivery;
use crate::job::BoxError;

/// Makes a panic below it an ordinary error of that job alone.
///
/// It catches panics of the handler, of the layers below it, in their `Drop`, and in `poll_ready`. With `panic = "abort"` there is
/// nothing to catch: the process ends, and its jobs come back when their leases run out.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use emq::{BoxError, Completion, layer::{CatchPanicLayer, Delivery}};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let service = ServiceBuilder::new()
///     .layer(CatchPanicLayer::new())
///     .service_fn(|_: Delivery| async { if true { panic!("no such table") } Ok::<_, BoxError>(Completion::empty()) });
/// let delivery = emq::testing::delivery("enroll");
/// assert_eq!(service.oneshot(delivery).await.unwrap_err().to_string(), "the job panicked: no such table");
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CatchPanicLayer(());

impl CatchPanicLayer {
    /// The layer.
    ///
    /// ```
    /// let layer = emq::layer::CatchPanicLayer::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for CatchPanicLayer {
    type Service = CatchPanic<S>;

    fn layer(&self, inner: S) -> CatchPanic<S> {
        CatchPanic { inner }
    }
}

/// The service of a [`CatchPanicLayer`].
#[derive(Clone, Debug)]
pub struct CatchPanic<S> {
    inner: S,
}

impl<S> Service<Delivery> for CatchPanic<S>
where
    S: Service<Delivery>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Catching<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        caught(|| self.inner.poll_ready(cx).map_err(Into::into))
            .unwrap_or_else(|panicked| Poll::Ready(Err(panicked.into())))
    }

    fn call(&mut self, delivery: Delivery) -> Catching<S::Future> {
        match caught(|| self.inner.call(delivery)) {
            Ok(future) => Catching { future: Some(future), panicked: None },
            Err(panicked) => Catching { future: None, panicked: Some(panicked) },
        }
    }
}

pin_project! {
    /// The response of a [`CatchPanic`].
    pub struct Catching<F> {
        // None once it is done: it is dropped in a place where a panic in its `Drop` is caught as well.
        #[pin]
        future: Option<F>,
        panicked: Option<Panicked>,
    }

    impl<F> PinnedDrop for Catching<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(panicked) = dropped(this.project().future) {
                tracing::error!(%panicked, "a job panicked while its run was dropped");
            }
        }
    }
}

impl<F> fmt::Debug for Catching<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catching").finish_non_exhaustive()
    }
}

impl<F, T, E> Future for Catching<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(panicked) = this.panicked.take() {
            return Poll::Ready(Err(panicked.into()));
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else { return Poll::Pending };
        // The error is the user's as well, and so is its conversion.
        let result = match caught(|| future.poll(cx).map_err(Into::into)) {
            Ok(polled) => ready!(polled),
            Err(panicked) => Err(panicked.into()),
        };
        // A panic while the run is taken down fails it as well: what it was to do may be half done.
        let result = match dropped(this.future) {
            Some(panicked) if result.is_ok() => Err(panicked.into()),
            _ => result,
        };
        Poll::Ready(result)
    }
}

/// Drops a run, and answers the panic of that, if there is one.
fn dropped<F>(mut future: Pin<&mut Option<F>>) -> Option<Panicked> {
    caught(|| future.set(None)).err()
}

/// Calls what a user wrote outside of a [`CatchPanic`].
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(Panicked::new)
}

/// The error that a panic becomes.
///
/// # Examples
///
/// ```
/// # fn example(error: emq::BoxError) {
/// use emq::layer::Panicked;
///
/// if let Some(panicked) = error.downcast_ref::<Panicked>() {
///     println!("{}", panicked.message());
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the job panicked: {message}")]
pub struct Panicked {
    message: String,
}

impl Panicked {
    fn new(panic: Box<dyn Any + Send>) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "with a value that is not text".into());
        // The value may itself panic when it is dropped, and so may that panic's.
        let mut value = panic;
        for _ in 0..2 {
            match catch_unwind(AssertUnwindSafe(|| drop(value))) {
                Ok(()) => return Self { message },
                Err(again) => value = again,
            }
        }
        #[expect(clippy::mem_forget, reason = "the only thing to be done with a value that can't be dropped")]
        std::mem::forget(value);
        Self { message }
    }

    /// The text of the panic, if it had one.
    ///
    /// ```
    /// # fn example(panicked: emq::layer::Panicked) {
    /// println!("{}", panicked.message());
    /// # }
    /// ```
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}
