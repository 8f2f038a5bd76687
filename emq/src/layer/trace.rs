use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tracing::{Span, field::Empty};

use super::{Delivery, Ended, catch_panic::caught};
use crate::{client::TRACEPARENT, store::Settled};

/// Puts each delivery into a span named `job`, and logs how it ended.
///
/// The span has the fields `job.name`, `job.id`, `queue`, `fence`, `failures`, and, where the producer sent a W3C
/// `traceparent`, its `trace_id` and `parent_id`; at the end also `outcome`. Within it the end is logged: a job that is done
/// at the level debug, one that isn't at info, and a lease that was lost, a stale token or a server that couldn't be told
/// at warn. To join it with the producer's trace in a
/// tracing system, use [`on_span`](Self::on_span).
///
/// # Examples
///
/// ```
/// use emq::layer::TraceLayer;
///
/// let layer = TraceLayer::new().on_span(|span, delivery| {
///     if let Some(traceparent) = delivery.header("traceparent") {
///         // With tracing-opentelemetry: span.set_parent(the context that `traceparent` names).
///         let _ = (span, traceparent);
///     }
/// });
/// ```
#[derive(Clone, Default)]
pub struct TraceLayer {
    on_span: Option<OnSpan>,
}

type OnSpan = Arc<dyn Fn(&Span, &Delivery) + Send + Sync>;

impl fmt::Debug for TraceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceLayer").finish_non_exhaustive()
    }
}

impl TraceLayer {
    /// The layer.
    ///
    /// ```
    /// let layer = emq::layer::TraceLayer::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `hook` with each new span, before the delivery enters it.
    ///
    /// ```
    /// let layer = emq::layer::TraceLayer::new().on_span(|span, _| {
    ///     span.record("outcome", "not yet");
    /// });
    /// ```
    #[must_use]
    pub fn on_span(mut self, hook: impl Fn(&Span, &Delivery) + Send + Sync + 'static) -> Self {
        self.on_span = Some(Arc::new(hook));
        self
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        Trace { inner, on_span: self.on_span.clone() }
    }
}

/// The service of a [`TraceLayer`].
#[derive(Clone)]
pub struct Trace<S> {
    inner: S,
    on_span: Option<OnSpan>,
}

impl<S> fmt::Debug for Trace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

impl<S, E> Service<Delivery> for Trace<S>
where
    S: Service<Delivery, Response = Ended, Error = E>,
{
    type Response = Ended;
    type Error = E;
    type Future = Traced<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Traced<S::Future> {
        let span = span(&delivery);
        if let Some(hook) = &self.on_span
            && let Err(panicked) = caught(|| hook(&span, &delivery))
        {
            tracing::error!(%panicked, "the hook for spans panicked");
        }
        let run = span.in_scope(|| self.inner.call(delivery));
        Traced { run, span }
    }
}

fn span(delivery: &Delivery) -> Span {
    let span = tracing::info_span!(
        "job",
        job.name = delivery.name(),
        job.id = %delivery.id(),
        queue = %delivery.queue(),
        fence = delivery.token(),
        failures = delivery.context().failures(),
        trace_id = Empty,
        parent_id = Empty,
        outcome = Empty,
    );
    if let Some((trace_id, parent_id)) = delivery.header(TRACEPARENT).and_then(parse_traceparent) {
        span.record("trace_id", trace_id);
        span.record("parent_id", parent_id);
    }
    span
}

/// Trace and parent of a W3C `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`, of which the first two may not be zero.
fn parse_traceparent(header: &str) -> Option<(&str, &str)> {
    let mut parts = header.split('-');
    let (version, trace_id, parent_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let well_formed = is_hex(version, 2) && is_hex(trace_id, 32) && is_hex(parent_id, 16) && is_hex(flags, 2);
    let valid = well_formed && version != "ff" && !is_zero(trace_id) && !is_zero(parent_id);
    valid.then_some((trace_id, parent_id))
}

pin_project! {
    /// The response of a [`Trace`].
    #[derive(Debug)]
    pub struct Traced<F> {
        #[pin]
        run: F,
        span: Span,
    }
}

impl<F: Future<Output = Result<Ended, E>>, E> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        let ended = ready!(this.run.poll(cx));
        if let Ok(ended) = &ended {
            log(this.span, ended);
        }
        Poll::Ready(ended)
    }
}

fn log(span: &Span, ended: &Ended) {
    match ended {
        Ended::Settled { outcome, settled: Settled::Accepted | Settled::Repeated } => {
            span.record("outcome", outcome.word());
            match outcome.text() {
                Some(text) => tracing::info!(outcome = outcome.word(), reason = text, "the job didn't get done"),
                None => tracing::debug!(outcome = outcome.word(), "the job ended"),
            }
        }
        Ended::Settled { outcome, settled: Settled::Cancelled } => {
            span.record("outcome", "cancelled");
            tracing::info!(decided = outcome.word(), "somebody has cancelled the job; it is gone");
        }
        Ended::Settled { outcome, settled } => {
            span.record("outcome", "stale");
            tracing::warn!(
                decided = outcome.word(),
                ?settled,
                "the job is somebody else's by now; nothing was written"
            );
        }
        Ended::Unsettled { outcome } => {
            span.record("outcome", "unsettled");
            tracing::warn!(decided = outcome.word(), "the server couldn't be told; the job will be delivered again");
        }
        Ended::Lost => {
            span.record("outcome", "lost");
            tracing::warn!("the lease was lost; the run was dropped and nothing was written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_traceparent;

    #[test]
    fn a_traceparent_is_read_as_w3c_defines_it() {
        let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parse_traceparent(header), Some(("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")));
        // A later version may say more.
        assert!(parse_traceparent(&format!("01{}-more", &header[2..])).is_some());
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        ] {
            assert_eq!(parse_traceparent(bad), None, "{bad:?}");
        }
    }
}
