//! The one place where the order of the layers is written.

use std::{convert::Infallible, sync::Arc};

use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceBuilder, util::BoxService};

use super::{
    CatchPanicLayer, DeadLetterLayer, Delivery, Ended, JobService, LeaseKeeper, LeaseLayer, RetryLayer, Route,
    SettleLayer, TimeoutLayer, TraceLayer, UserLayer, Writer, boxed,
};
use crate::job::{BoxError, Completion};

/// A worker's stack: takes deliveries, and never fails.
pub(crate) type Stack = BoxService<Delivery, Ended, Infallible>;

/// What the layers that talk to the outside are made from.
pub(crate) struct Outside {
    pub(crate) trace: TraceLayer,
    pub(crate) keeper: LeaseKeeper,
    pub(crate) writer: Arc<dyn Writer>,
    pub(crate) give_back: CancellationToken,
}

/// The whole stack over the jobs' services, with the worker's layers, the first of them outermost.
pub(crate) fn stack(outside: Outside, layers: &[UserLayer], jobs: Route) -> Stack {
    let Outside { trace, keeper, writer, give_back } = outside;
    let service = ServiceBuilder::new()
        .layer(trace)
        .layer(LeaseLayer::new(&keeper))
        .layer(SettleLayer::with(writer, give_back))
        .layer(DeadLetterLayer::new())
        .layer(RetryLayer::new())
        .layer(CatchPanicLayer::new())
        .service(around(layers, boxed(jobs)));
    BoxService::new(service)
}

/// The service of one job: its own layers, the first outermost, its timeout, its handler.
pub(crate) fn job<H>(layers: &[UserLayer], handler: H) -> JobService
where
    H: Service<Delivery, Response = Completion, Error: Into<BoxError>, Future: Send + 'static> + Send + 'static,
{
    around(layers, boxed(ServiceBuilder::new().layer(TimeoutLayer::new()).service(handler)))
}

fn around(layers: &[UserLayer], service: JobService) -> JobService {
    layers.iter().rev().fold(service, |inner, layer| layer.wrap(inner))
}
