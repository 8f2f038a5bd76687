use std::fmt;

use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};
use tower_test::mock;

use super::{Handle, Played, SECOND, delivery};
use crate::{
    job::{Backoff, BoxError, Completion, JobError, JobOptions},
    layer::{Declined, Delivery, Outcome, RetryLayer},
    testing,
};

async fn outcome(error: impl Fn() -> BoxError + Clone) -> Result<Outcome, Declined> {
    let failing = service_fn(move |_: Delivery| std::future::ready(Err::<Completion, BoxError>(error())));
    RetryLayer::new().layer(failing).oneshot(delivery()).await
}

#[tokio::test]
async fn a_success_is_done_with_its_result() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    let mut service = RetryLayer::new().layer(service);
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    handle.next_request().await.unwrap().1.send_response(Completion::of(&7).unwrap());
    assert_eq!(assert_ready_ok!(run.poll()), Outcome::Done(Completion::of(&7).unwrap()));
}

#[tokio::test]
async fn a_failure_is_to_run_again_after_the_backoff_of_its_job() {
    let failing = service_fn(|_: Delivery| std::future::ready(Err::<Completion, BoxError>("reset".into())));
    let options = JobOptions::new().backoff(Backoff::fixed(5 * SECOND).jitter(0.0));
    let outcome = RetryLayer::new().layer(failing).oneshot(testing::delivery_with("enroll", options)).await;
    assert_eq!(outcome.unwrap(), Outcome::Retry { delay: 5 * SECOND, error: "reset".into() });
}

#[tokio::test]
async fn the_intent_of_an_error_survives_the_layers_below() {
    let snooze = outcome(|| JobError::snooze(9 * SECOND).because("not yet").into()).await.unwrap();
    assert_eq!(snooze, Outcome::Snooze { delay: 9 * SECOND, why: "not yet".into() });
    let discard = outcome(|| JobError::discard("gone").into()).await.unwrap();
    assert_eq!(discard, Outcome::Discard { why: "gone".into() });
    let later = outcome(|| JobError::retry_after(9 * SECOND).because("429").into()).await.unwrap();
    assert_eq!(later, Outcome::Retry { delay: 9 * SECOND, error: "429".into() });
    let declined = outcome(|| JobError::permanent("no such student").into()).await.unwrap_err();
    assert_eq!(declined.error().to_string(), "no such student");
}

#[tokio::test]
async fn a_layer_that_fails_to_get_ready_fails_the_next_job_and_no_other() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    let mut service = RetryLayer::new().layer(service);
    handle.send_error("no room");
    let outcome = service.ready().await.unwrap().call(delivery()).await.unwrap();
    assert!(matches!(outcome, Outcome::Retry { error, .. } if error == "no room"));
}

#[tokio::test]
async fn it_is_ready_when_what_it_wraps_is() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    handle.allow(0);
    let mut service = RetryLayer::new().layer(service);
    let mut ready = task::spawn(service.ready());
    assert_pending!(ready.poll().map(drop));
    handle.allow(1);
    assert!(ready.is_woken());
    assert!(ready.poll().is_ready());
}

/// An error of a user that panics where the test says.
#[derive(Debug)]
struct Spiteful {
    text: bool,
}

impl fmt::Display for Spiteful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.text, "in the text");
        f.write_str("an error")
    }
}

impl std::error::Error for Spiteful {}

impl Drop for Spiteful {
    fn drop(&mut self) {
        assert!(self.text, "in drop");
    }
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_looked_at_is_a_failure_of_its_job() {
    for (text, message) in [(true, "the job panicked: in the text"), (false, "the job panicked: in drop")] {
        let outcome = outcome(move || Box::new(Spiteful { text })).await.unwrap();
        assert!(matches!(&outcome, Outcome::Retry { error, .. } if error == message), "{outcome:?}");
    }
}

#[tokio::test]
async fn the_response_of_a_run_that_isnt_done_waits() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    let mut service = RetryLayer::new().layer(service);
    let options = JobOptions::new().max_attempts(1);
    let mut run = task::spawn(service.ready().await.unwrap().call(testing::delivery_with("enroll", options)));
    assert_pending!(run.poll());
    let (_, respond) = handle.next_request().await.unwrap();
    assert_pending!(run.poll());
    respond.send_error("reset");
    assert!(run.is_woken());
    assert_eq!(assert_ready_err!(run.poll()).error().to_string(), "reset");
}
