//! The one place where the order of the layers is written.

use std::sync::Arc;

use tower::{Service, ServiceBuilder};

use super::{
    CatchPanic, CatchPanicLayer, DeadLetter, DeadLetterLayer, Delivery, JobService, KeepLease, LeaseKeeper, LeaseLayer,
    Retry, RetryLayer, Route, Runner, Settle, SettleLayer, TimeoutLayer, Trace, TraceLayer, UserLayer, Writer,
};
use crate::{
    job::{BoxError, Completion},
    latch::Latch,
};

/// A worker's stack: takes deliveries, and never fails.
pub(crate) type Stack = Trace<KeepLease<Settle<DeadLetter<Retry<CatchPanic<JobService>>>>>>;

/// What the layers that talk to the outside are made from.
pub(crate) struct Outside {
    pub(crate) trace: TraceLayer,
    pub(crate) keeper: LeaseKeeper,
    pub(crate) writer: Arc<dyn Writer>,
    pub(crate) give_back: Arc<Latch>,
}

/// The whole stack over the jobs' services, with the worker's layers, the first of them outermost.
pub(crate) fn stack(outside: Outside, layers: &[UserLayer], jobs: Route) -> Stack {
    let Outside { trace, keeper, writer, give_back } = outside;
    ServiceBuilder::new()
        .layer(trace)
        .layer(LeaseLayer::new(&keeper))
        .layer(SettleLayer::with(writer, give_back))
        .layer(DeadLetterLayer::new())
        .layer(RetryLayer::new())
        .layer(CatchPanicLayer::new())
        .service(around(layers, JobService::new(jobs)))
}

/// How one job is run: through its own layers, the first outermost, its timeout, its handler.
pub(crate) fn job<H>(layers: &[UserLayer], handler: H) -> Runner
where
    H: Service<Delivery, Response = Completion, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let service = ServiceBuilder::new().layer(TimeoutLayer::new()).service(handler);
    if layers.is_empty() {
        Runner::always_ready(service)
    } else {
        Runner::when_ready(around(layers, JobService::new(service)))
    }
}

fn around(layers: &[UserLayer], service: JobService) -> JobService {
    layers.iter().rev().fold(service, |inner, layer| layer.wrap(inner))
}
