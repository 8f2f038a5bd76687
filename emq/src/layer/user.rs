use tower::{
    Layer, Service,
    util::{BoxService, MapErr},
};

use super::Delivery;
use crate::job::{BoxError, Completion};

/// What a user's layer is put around: the rest of the stack, down to the handler.
///
/// It isn't `Clone`, so that layers such as `RateLimitLayer`, whose services can't be cloned, fit as they are.
pub type JobService = BoxService<Delivery, Completion, BoxError>;

/// A Tower layer that fits into a worker's stack.
///
/// Implemented for every [`Layer`] over [`JobService`] whose service takes a [`Delivery`], answers a [`Completion`], and is
/// `Send`. Several make one with [`ServiceBuilder`](tower::ServiceBuilder) or a tuple.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::layer::JobLayer;
/// use tower::{limit::{ConcurrencyLimitLayer, RateLimitLayer}, timeout::TimeoutLayer};
///
/// fn fits(_: impl JobLayer) {}
///
/// fits(TimeoutLayer::new(Duration::from_secs(5)));
/// fits(ConcurrencyLimitLayer::new(8));
/// fits(RateLimitLayer::new(100, Duration::from_secs(1)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't fit into a worker's stack",
    label = "not a layer over `JobService`",
    note = "a layer fits if its service takes `emq::layer::Delivery`, answers `emq::Completion`, fails with an error that converts into `emq::BoxError`, and is `Send + 'static` as its future is"
)]
pub trait JobLayer: sealed::Wrap + Send + 'static {}

impl<L> JobLayer for L where L: sealed::Wrap + Send + 'static {}

mod sealed {
    use super::{BoxError, Completion, Delivery, JobService, Layer, Service, boxed};

    /// Puts the layer around a service.
    pub trait Wrap {
        fn wrap(&self, inner: JobService) -> JobService;
    }

    impl<L> Wrap for L
    where
        L: Layer<JobService>,
        L::Service: Service<Delivery, Response = Completion> + Send + 'static,
        <L::Service as Service<Delivery>>::Error: Into<BoxError>,
        <L::Service as Service<Delivery>>::Future: Send + 'static,
    {
        fn wrap(&self, inner: JobService) -> JobService {
            boxed(self.layer(inner))
        }
    }
}

/// A user's layer whose type is forgotten.
pub(crate) struct UserLayer(Box<dyn Fn(JobService) -> JobService + Send>);

impl UserLayer {
    pub(crate) fn new(layer: impl JobLayer) -> Self {
        Self(Box::new(move |inner| layer.wrap(inner)))
    }

    pub(crate) fn wrap(&self, inner: JobService) -> JobService {
        (self.0)(inner)
    }
}

/// Forgets a service's type; its error becomes a [`BoxError`], keeping a [`JobError`](crate::JobError)'s intent.
pub(crate) fn boxed<S>(service: S) -> JobService
where
    S: Service<Delivery, Response = Completion> + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    BoxService::new(MapErr::new(service, |error: S::Error| -> BoxError { error.into() }))
}
