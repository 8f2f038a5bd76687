use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Service as _, ServiceExt as _};

use super::delivery;
use crate::{
    inject::Scope,
    job::{Completion, Handler, Job, JobError},
    layer::{Delivery, handler},
};

#[derive(Serialize, Deserialize)]
struct EnrollJob {}

impl Job for EnrollJob {
    const NAME: &'static str = "enroll";
}

impl<S: Send + Sync + 'static> Handler<S> for EnrollJob {
    async fn run(self, scope: Scope<S>) -> Result<Completion, JobError> {
        match scope.context().header("do") {
            Some("wait") => std::future::pending().await,
            Some("panic") => panic!("no such table"),
            Some("fail") => Err(JobError::new("reset")),
            _ => Ok(Completion::empty()),
        }
    }
}

fn told_to(what: &str) -> Delivery {
    let mut job = crate::testing::claimed("enroll", b"{}".to_vec());
    job.headers.insert("do".into(), what.into());
    Delivery::new(delivery().queue(), job, EnrollJob::OPTIONS)
}

#[tokio::test]
async fn a_run_that_is_dropped_by_anyone_tells_what_it_left_on_other_threads() {
    let delivery = told_to("wait");
    let mut service = handler::<(), EnrollJob>(Arc::new(()));
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery.clone()));
    assert_pending!(run.poll());
    assert!(!delivery.context().is_cancelled());
    drop(run);
    assert!(delivery.context().is_cancelled());
}

#[tokio::test]
async fn a_run_that_has_ended_wasnt_given_up() {
    for what in ["succeed", "fail"] {
        let delivery = told_to(what);
        let _ = handler::<(), EnrollJob>(Arc::new(())).oneshot(delivery.clone()).await;
        assert!(!delivery.context().is_cancelled(), "{what}");
    }
}

#[tokio::test]
async fn a_payload_that_cant_be_decoded_is_a_permanent_error_with_the_reason() {
    let job = crate::testing::claimed("enroll", b"{not JSON".to_vec());
    let delivery = Delivery::new(delivery().queue(), job, EnrollJob::OPTIONS);
    let error = handler::<(), EnrollJob>(Arc::new(())).oneshot(delivery).await.unwrap_err();
    assert_eq!(error.kind(), crate::JobErrorKind::Permanent);
    assert!(error.to_string().starts_with("the payload can't be decoded as `enroll`: "), "{error}");
}

#[tokio::test]
async fn a_run_that_is_done_at_once_needs_one_poll() {
    let mut run = task::spawn(handler::<(), EnrollJob>(Arc::new(())).oneshot(delivery()));
    assert_ready_ok!(run.poll());
}
