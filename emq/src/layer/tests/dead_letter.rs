use std::{
    fmt,
    task::{Context, Poll},
};

use tokio_test::{assert_pending, task};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::delivery;
use crate::{
    job::JobError,
    layer::{DeadLetterLayer, Declined, Delivery, Outcome},
};

#[tokio::test]
async fn what_retry_declined_is_dead_and_the_rest_passes() {
    let declining =
        service_fn(async |_: Delivery| Err::<Outcome, _>(Declined::new(JobError::permanent("no such one"))));
    let outcome = DeadLetterLayer::new().layer(declining).oneshot(delivery()).await;
    assert_eq!(outcome, Ok(Outcome::Dead { error: "no such one".into() }));

    let deciding = service_fn(async |_: Delivery| Ok::<_, Declined>(Outcome::Discard { why: "gone".into() }));
    let outcome = DeadLetterLayer::new().layer(deciding).oneshot(delivery()).await;
    assert_eq!(outcome, Ok(Outcome::Discard { why: "gone".into() }));
}

#[test]
fn what_was_declined_tells_its_cause() {
    let declined = Declined::new(JobError::permanent("no such one"));
    assert_eq!(std::error::Error::source(&declined).unwrap().to_string(), "no such one");
    assert_eq!(declined.to_string(), "not to be retried: no such one");
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_looked_at_is_dead_all_the_same() {
    #[derive(Debug, thiserror::Error)]
    struct Spiteful;
    impl fmt::Display for Spiteful {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("in the text")
        }
    }
    let declining = service_fn(async |_: Delivery| Err::<Outcome, _>(Declined::new(JobError::permanent(Spiteful))));
    let outcome = DeadLetterLayer::new().layer(declining).oneshot(delivery()).await;
    assert_eq!(outcome, Ok(Outcome::Dead { error: "the job panicked: in the text".into() }));
}

/// Answers `poll_ready` with what stands here, the last first.
struct Readiness(Vec<Poll<Result<(), Declined>>>);

impl Service<Delivery> for Readiness {
    type Response = Outcome;
    type Error = Declined;
    type Future = std::future::Ready<Result<Outcome, Declined>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Declined>> {
        self.0.pop().unwrap_or(Poll::Ready(Ok(())))
    }

    fn call(&mut self, _: Delivery) -> Self::Future {
        std::future::ready(Ok(Outcome::Release))
    }
}

#[tokio::test]
async fn what_fails_to_get_ready_buries_the_next_job_and_no_other() {
    let failed = Poll::Ready(Err(Declined::new(JobError::permanent("no room"))));
    let mut service = DeadLetterLayer::new().layer(Readiness(vec![failed, Poll::Pending]));
    assert_pending!(task::spawn(service.ready()).poll().map(drop));
    let ready = service.ready().await.unwrap();
    // A second look changes nothing.
    let ready = ready.ready().await.unwrap();
    assert_eq!(ready.call(delivery()).await, Ok(Outcome::Dead { error: "no room".into() }));
    assert_eq!(service.ready().await.unwrap().call(delivery()).await, Ok(Outcome::Release));
}
