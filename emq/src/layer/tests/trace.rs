use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::task::yield_now;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::delivery;
use crate::{
    job::{Completion, JobOptions},
    layer::{Delivery, Ended, Outcome, TraceLayer},
    store::Settled,
    testing,
};

type Fields = BTreeMap<String, String>;

/// An event's level, its fields, and in which span it was.
type Logged = (Level, Fields, Option<u64>);

/// Takes down spans and events.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<Vec<(&'static str, Fields)>>>,
    events: Arc<Mutex<Vec<Logged>>>,
    entered: Arc<Mutex<Vec<u64>>>,
    count: Arc<AtomicU64>,
}

struct Read<'a>(&'a mut Fields);

impl Visit for Read<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::new();
        attributes.record(&mut Read(&mut fields));
        self.spans.lock().unwrap().push((attributes.metadata().name(), fields));
        span::Id::from_u64(self.count.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let mut spans = self.spans.lock().unwrap();
        values.record(&mut Read(&mut spans[span.into_u64() as usize - 1].1));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Read(&mut fields));
        let span = self.entered.lock().unwrap().last().copied();
        self.events.lock().unwrap().push((*event.metadata().level(), fields, span));
    }

    fn enter(&self, span: &span::Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &span::Id) {
        self.entered.lock().unwrap().pop();
    }
}

impl Recorder {
    /// The fields of the only span.
    fn span(&self) -> Fields {
        let spans = self.spans.lock().unwrap();
        let [("job", fields)] = spans.as_slice() else { panic!("{spans:?}") };
        fields.clone()
    }
}

/// Runs a delivery that ends so, and answers what was taken down.
async fn traced(layer: TraceLayer, delivery: Delivery, ended: Ended) -> Recorder {
    let recorder = Recorder::default();
    let _default = tracing::subscriber::set_default(recorder.clone());
    let service = layer.layer(service_fn(move |_: Delivery| {
        let ended = ended.clone();
        async move {
            yield_now().await;
            tracing::info!("in the handler");
            Ok::<_, Infallible>(ended)
        }
    }));
    let Ok(_) = service.oneshot(delivery).await;
    recorder
}

fn done() -> Ended {
    Ended::Settled { outcome: Outcome::Done(Completion::empty()), settled: Settled::Accepted }
}

fn with_header(name: &str, value: &str) -> Delivery {
    let mut job = testing::claimed("enroll", b"{}".to_vec());
    job.headers.insert(name.into(), value.into());
    Delivery::new(delivery().queue(), job, JobOptions::new())
}

#[tokio::test]
async fn each_delivery_has_one_span_that_says_which_it_is() {
    let delivery = delivery();
    let recorder = traced(TraceLayer::new(), delivery.clone(), done()).await;
    let fields = recorder.span();
    let id = delivery.id().to_string();
    for (name, value) in [
        ("job.name", "enroll"),
        ("job.id", id.as_str()),
        ("queue", "default"),
        ("fence", "1"),
        ("failures", "0"),
        ("outcome", "done"),
    ] {
        assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!fields.contains_key("trace_id"));
}

#[tokio::test]
async fn what_the_handler_logs_is_in_the_span_and_what_comes_after_isnt() {
    let recorder = traced(TraceLayer::new(), delivery(), done()).await;
    let events = recorder.events.lock().unwrap();
    assert!(events.iter().any(|(_, fields, span)| fields["message"] == "in the handler" && *span == Some(1)));
    assert!(recorder.entered.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_traceparent_of_the_producer_is_in_the_span() {
    let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let recorder = traced(TraceLayer::new(), with_header("traceparent", header), done()).await;
    let fields = recorder.span();
    assert_eq!(fields["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(fields["parent_id"], "b7ad6b7169203331");

    let recorder = traced(TraceLayer::new(), with_header("traceparent", "nonsense"), done()).await;
    assert!(!recorder.span().contains_key("trace_id"));
}

#[tokio::test]
async fn how_it_ended_is_recorded_and_logged_as_loudly_as_it_matters() {
    let settled = |outcome, settled| Ended::Settled { outcome, settled };
    let dead = || Outcome::Dead { error: "no such student".into() };
    for (ended, recorded, level) in [
        (done(), "done", Level::DEBUG),
        (settled(dead(), Settled::Accepted), "dead", Level::INFO),
        (settled(dead(), Settled::Repeated), "dead", Level::INFO),
        (settled(dead(), Settled::Stale), "stale", Level::WARN),
        (settled(dead(), Settled::Gone), "stale", Level::WARN),
        (settled(Outcome::Release, Settled::Accepted), "release", Level::DEBUG),
        (Ended::Unsettled { outcome: dead() }, "unsettled", Level::WARN),
        (Ended::Lost, "lost", Level::WARN),
    ] {
        let recorder = traced(TraceLayer::new(), delivery(), ended.clone()).await;
        assert_eq!(recorder.span()["outcome"], recorded);
        let events = recorder.events.lock().unwrap();
        let (last, fields, _) = events.last().unwrap();
        assert_eq!(*last, level, "{ended:?}");
        if recorded == "dead" {
            assert_eq!(fields["reason"], "no such student");
        }
    }
}

#[tokio::test]
async fn a_hook_is_given_the_span_and_the_delivery() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let seen = Arc::clone(&seen);
        move |span: &tracing::Span, delivery: &Delivery| {
            span.record("trace_id", "from the hook");
            seen.lock().unwrap().push(delivery.header("tenant").map(str::to_owned));
        }
    };
    let recorder = traced(TraceLayer::new().on_span(hook), with_header("tenant", "north"), done()).await;
    assert_eq!(*seen.lock().unwrap(), [Some("north".to_owned())]);
    assert_eq!(recorder.span()["trace_id"], "from the hook");
}

#[tokio::test]
async fn a_hook_that_panics_doesnt_harm_the_job() {
    let recorder = traced(TraceLayer::new().on_span(|_, _| panic!("no exporter")), delivery(), done()).await;
    assert_eq!(recorder.span()["outcome"], "done");
}
