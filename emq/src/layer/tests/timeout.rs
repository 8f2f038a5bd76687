use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};
use tower_test::mock;

use super::{Handle, Played, SECOND, delivery};
use crate::{
    job::{BoxError, Completion, JobOptions},
    layer::{Delivery, Elapsed, TimeoutLayer},
    testing,
};

/// A job with this timeout.
fn limited(timeout: Duration) -> Delivery {
    testing::delivery_with("enroll", JobOptions::new().timeout(timeout))
}

async fn takes(time: Duration, delivery: Delivery) -> Result<Completion, BoxError> {
    let slow = service_fn(move |_: Delivery| async move {
        sleep(time).await;
        Ok::<_, BoxError>(Completion::empty())
    });
    TimeoutLayer::new().layer(slow).oneshot(delivery).await
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_its_time_is_over_and_not_before() {
    let (start, delivery) = (Instant::now(), limited(30 * SECOND));
    let error = takes(31 * SECOND, delivery.clone()).await.unwrap_err();
    assert_eq!(start.elapsed(), 30 * SECOND);
    assert_eq!(error.downcast_ref::<Elapsed>().unwrap().after(), 30 * SECOND);
    assert_eq!(error.to_string(), "the job ran longer than its timeout of 30s");
    assert!(delivery.context().is_cancelled(), "what runs on other threads is told");
}

#[tokio::test(start_paused = true)]
async fn a_run_within_its_time_is_left_alone() {
    let delivery = limited(30 * SECOND);
    assert!(takes(29 * SECOND, delivery.clone()).await.is_ok());
    assert!(!delivery.context().is_cancelled());
    // One that is done in the moment in which its time is over, is done.
    assert!(takes(30 * SECOND, limited(30 * SECOND)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_timeout_may_take_for_ever() {
    assert!(takes(86_400 * SECOND, delivery()).await.is_ok());
    assert!(takes(86_400 * SECOND, limited(Duration::MAX)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_time_runs_from_the_call_and_not_while_the_job_waits_for_room() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    handle.allow(0);
    let mut service = TimeoutLayer::new().layer(service);
    assert_pending!(task::spawn(service.ready()).poll().map(drop));
    sleep(60 * SECOND).await;
    handle.allow(1);
    let mut run = task::spawn(service.ready().await.unwrap().call(limited(SECOND)));
    assert_pending!(run.poll());
    sleep(SECOND).await;
    assert!(run.is_woken());
    assert!(assert_ready!(run.poll()).is_err());
}
