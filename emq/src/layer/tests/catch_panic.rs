use std::{
    future::{Ready, ready},
    panic::panic_any,
    pin::Pin,
    task::{Context, Poll},
};

use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};
use tower_test::mock;

use super::{Handle, Played, delivery};
use crate::{
    job::{BoxError, Completion},
    layer::{CatchPanicLayer, Delivery, Panicked},
};

async fn error_of<F: Future<Output = Result<Completion, BoxError>>>(run: impl Fn() -> F + Clone) -> String {
    let service = CatchPanicLayer::new().layer(service_fn(move |_: Delivery| run()));
    service.oneshot(delivery()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_panic_of_the_handler_is_an_error_with_its_message() {
    assert_eq!(error_of(async || panic!("no such table")).await, "the job panicked: no such table");
    let course = 7;
    assert_eq!(error_of(move || async move { panic!("no course {course}") }).await, "the job panicked: no course 7");
    assert_eq!(error_of(async || panic_any(7_u64)).await, "the job panicked: with a value that is not text");
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_caught_too() {
    let early = || -> Ready<Result<Completion, BoxError>> { panic!("at once") };
    assert_eq!(error_of(early).await, "the job panicked: at once");
}

#[tokio::test]
async fn what_is_no_panic_passes_as_it_is() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    let mut service = CatchPanicLayer::new().layer(service);
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    handle.next_request().await.unwrap().1.send_response(Completion::of(&7).unwrap());
    assert_eq!(assert_ready_ok!(run.poll()), Completion::of(&7).unwrap());

    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    handle.next_request().await.unwrap().1.send_error("reset");
    assert_eq!(assert_ready_err!(run.poll()).to_string(), "reset");
}

/// Panics where the test says.
struct Panics {
    ready: bool,
    call: bool,
}

impl Service<Delivery> for Panics {
    type Response = Completion;
    type Error = BoxError;
    type Future = Ready<Result<Completion, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        assert!(!self.ready, "in poll_ready");
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Delivery) -> Self::Future {
        assert!(!self.call, "in call");
        ready(Ok(Completion::empty()))
    }
}

#[tokio::test]
async fn a_panic_of_a_layer_is_caught_wherever_it_comes_from() {
    let error = async |panics| {
        let service = CatchPanicLayer::new().layer(panics);
        service.oneshot(delivery()).await.unwrap_err().to_string()
    };
    assert_eq!(error(Panics { ready: true, call: false }).await, "the job panicked: in poll_ready");
    assert_eq!(error(Panics { ready: false, call: true }).await, "the job panicked: in call");
}

/// A future that panics when it is dropped.
struct PanicsOnDrop {
    ready: bool,
}

impl Future for PanicsOnDrop {
    type Output = Result<Completion, BoxError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.ready { Poll::Ready(Ok(Completion::empty())) } else { Poll::Pending }
    }
}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[tokio::test]
async fn a_panic_while_a_finished_run_is_dropped_fails_it() {
    assert_eq!(error_of(|| PanicsOnDrop { ready: true }).await, "the job panicked: in drop");
}

#[tokio::test]
async fn a_run_that_had_failed_keeps_its_error_whatever_its_drop_does() {
    struct FailsAndPanics;
    impl Future for FailsAndPanics {
        type Output = Result<Completion, BoxError>;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(Err("no such student".into()))
        }
    }
    impl Drop for FailsAndPanics {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    assert_eq!(error_of(|| FailsAndPanics).await, "no such student");
}

#[tokio::test]
async fn a_panic_while_an_unfinished_run_is_dropped_goes_no_further() {
    let mut service = CatchPanicLayer::new().layer(service_fn(|_: Delivery| PanicsOnDrop { ready: false }));
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    drop(run);
}

/// A panic's payload that panics itself when it is dropped, so many times over.
struct Spiteful(u32);

impl Drop for Spiteful {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Spiteful(self.0 - 1));
        }
    }
}

#[tokio::test]
async fn a_payload_that_panics_when_dropped_is_got_rid_of() {
    for depth in [1, 2, 5] {
        let error = error_of(move || async move { panic_any(Spiteful(depth)) }).await;
        assert_eq!(error, "the job panicked: with a value that is not text");
    }
}

#[tokio::test]
async fn the_panic_can_be_told_from_other_errors() {
    let service = CatchPanicLayer::new()
        .layer(service_fn(async |_: Delivery| -> Result<Completion, BoxError> { panic!("no such table") }));
    let error = service.oneshot(delivery()).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Panicked>().unwrap().message(), "no such table");
}

#[tokio::test]
async fn a_service_that_isnt_ready_isnt_made_ready_by_it() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    handle.allow(0);
    let mut service = CatchPanicLayer::new().layer(service);
    assert_pending!(task::spawn(service.ready()).poll().map(drop));
    handle.allow(1);
    assert!(assert_ready!(task::spawn(service.ready()).poll()).is_ok());
}
