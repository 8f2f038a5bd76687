//! A panic is a failure of its job alone.

use std::panic::panic_any;

use emq::{
    BoxError, Completion, IntoOutcome as _, JobError, JobState,
    layer::{Delivery, JobService},
};
use tower::{Service as _, layer::layer_fn, service_fn};

use crate::errand::{Does, Errand, Place, Result, is_done, start};

#[derive(Debug)]
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

/// Runs one job that panics so, and one that doesn't, and answers what is kept of the first.
async fn panics(how: impl Fn() -> Result + Send + Sync + Clone + 'static) -> String {
    let place = Place::shared("panic").await;
    let does = Does::new(move |n, _| {
        let how = how.clone();
        async move {
            tokio::task::yield_now().await;
            if n == 0 { how() } else { Ok(Completion::empty()) }
        }
    });
    let worker = start(place.worker(does).concurrency(1));
    let id = place.errand(0).max_attempts(1).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    place.errand(1).await.unwrap();
    place.completed(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.dead, stats.completed, stats.in_hand), (1, 1, 0));
    place.field(id, "last_error").await.unwrap()
}

#[tokio::test]
async fn a_panic_of_a_handler_is_kept_with_its_message() {
    assert_eq!(panics(|| panic!("no such table")).await, "the job panicked: no such table");
    assert_eq!(panics(|| panic_any(7)).await, "the job panicked: with a value that is not text");
    assert_eq!(panics(|| panic_any(PanicsOnDrop)).await, "the job panicked: with a value that is not text");
    let in_drop = || {
        let _spiteful = PanicsOnDrop;
        Ok(Completion::empty())
    };
    assert_eq!(panics(in_drop).await, "the job panicked: in drop");
}

#[tokio::test]
async fn a_panic_of_a_layer_fails_the_job_and_the_worker_goes_on() {
    let place = Place::shared("panic").await;
    let panicking = layer_fn(|mut inner: JobService| {
        service_fn(move |delivery: Delivery| {
            assert!(delivery.header("spite").is_none(), "the layer's fault");
            inner.call(delivery)
        })
    });
    let worker = start(place.worker(is_done()).layer(panicking));
    let id = place.errand(0).header("spite", "yes").max_attempts(1).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    assert_eq!(place.field(id, "last_error").await.unwrap(), "the job panicked: the layer's fault");
    place.errand(1).await.unwrap();
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_hook_for_spans_that_panics_harms_neither_job_nor_worker() {
    let place = Place::shared("panic").await;
    let worker = start(place.worker(is_done()).on_span(|_, _| panic!("no exporter")));
    place.enqueue(10).await;
    place.completed(10).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_task_that_a_handler_spawned_and_that_panics_harms_nobody() {
    let place = Place::shared("panic").await;
    let does = Does::new(|_, _| async {
        let spawned = tokio::spawn(async { panic!("in a task") });
        assert!(spawned.await.is_err());
        Ok::<_, emq::JobError>(Completion::empty())
    });
    let worker = start(place.worker(does));
    place.errand(0).await.unwrap();
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_shown_is_a_failure_of_its_job() {
    #[derive(Debug)]
    struct Spiteful;
    impl std::fmt::Display for Spiteful {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("in its text")
        }
    }
    impl std::error::Error for Spiteful {}
    let failed = panics(|| Err(emq::JobError::new(Spiteful))).await;
    assert_eq!(failed, "the job panicked: in its text");
}

/// It panics wherever user code is called for what a run answers.
#[derive(Debug)]
struct Spiteful;

impl serde::Serialize for Spiteful {
    fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        panic!("in its encoding")
    }
}

impl From<Spiteful> for JobError {
    fn from(_: Spiteful) -> Self {
        panic!("in its conversion")
    }
}

/// An error that panics when it is dropped.
#[derive(Debug)]
struct Bomb(PanicsOnDrop);

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bomb")
    }
}

impl std::error::Error for Bomb {}

#[tokio::test]
async fn a_result_that_panics_when_it_is_encoded_is_a_failure_of_its_job() {
    assert_eq!(panics(|| Completion::of(&Spiteful)).await, "the job panicked: in its encoding");
    assert_eq!(panics(|| Ok::<_, JobError>(Spiteful).into_outcome()).await, "the job panicked: in its encoding");
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_converted_or_dropped_is_a_failure_of_its_job() {
    assert_eq!(panics(|| Err::<(), _>(Spiteful).into_outcome()).await, "the job panicked: in its conversion");
    let errors: [fn(Bomb) -> JobError; 2] = [JobError::new, JobError::permanent];
    for error in errors {
        let failed = panics(move || Err(error(Bomb(PanicsOnDrop)))).await;
        assert!(["a bomb", "the job panicked: in drop"].contains(&failed.as_str()), "{failed}");
    }
}

#[tokio::test]
async fn a_payload_that_panics_when_it_is_decoded_is_a_failure_of_its_job() {
    #[derive(serde::Serialize)]
    struct Trap {}
    impl<'de> serde::Deserialize<'de> for Trap {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
            panic!("in its decoding")
        }
    }
    impl emq::Job for Trap {
        const NAME: &'static str = "trap";
    }
    impl emq::Handler<Does> for Trap {
        async fn run(self, _: emq::inject::Scope<Does>) -> Result {
            Ok(Completion::empty())
        }
    }
    let place = Place::shared("panic").await;
    let worker = start(place.worker(is_done()).register::<Trap>());
    let id = place.queue.enqueue(Trap {}).max_attempts(1).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    assert_eq!(place.field(id, "last_error").await.unwrap(), "the job panicked: in its decoding");
    place.errand(1).await.unwrap();
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_panic_counts_against_the_budget_like_any_failure() {
    let place = Place::shared("panic").await;
    let refusing = layer_fn(|_: JobService| {
        service_fn(async |_: Delivery| -> std::result::Result<Completion, BoxError> { panic!("each time") })
    });
    let worker = start(place.worker(is_done()).layer(refusing));
    let id = place.queue.enqueue(Errand { n: 0 }).max_attempts(3).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    let stats = worker.stop().await;
    assert_eq!((stats.retried, stats.dead), (2, 1));
}
