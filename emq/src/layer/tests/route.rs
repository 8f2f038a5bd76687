use std::{
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Service, service_fn};
use tower_test::mock;

use super::{Handle, Played};
use crate::{
    job::{BoxError, Completion, JobError, JobErrorKind},
    layer::{Delivery, JobService, Route, Runner, route::Routed},
    testing::delivery,
};

/// A job that answers with its own name.
fn named(name: &'static str) -> Runner {
    Runner::always_ready(service_fn(move |_: Delivery| async move { Ok::<_, BoxError>(Completion::of(&name)?) }))
}

#[tokio::test]
async fn a_delivery_goes_to_the_job_of_its_name_or_of_an_old_one() {
    let mut route = Route::default();
    route.add(["enroll", "enrol"], &named("enroll"));
    route.add(["expel"], &named("expel"));
    for (name, job) in [("enroll", "enroll"), ("enrol", "enroll"), ("expel", "expel")] {
        assert_eq!(route.call(delivery(name)).await.unwrap(), Completion::of(&job).unwrap());
    }
}

#[tokio::test]
async fn a_name_that_nobody_knows_goes_back_with_a_delay_and_the_reason() {
    let mut route = Route::default();
    route.add(["enroll"], &named("enroll"));
    for name in ["unheard_of", "", "ENROLL"] {
        let error = JobError::from_box(route.call(delivery(name)).await.unwrap_err());
        assert!(matches!(error.kind(), JobErrorKind::Snooze(delay) if delay >= Duration::from_secs(1)));
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
}

#[tokio::test]
async fn a_job_that_isnt_ready_holds_up_no_other() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    handle.allow(1);
    let mut route = Route::default();
    route.add(["scarce"], &Runner::when_ready(JobService::new(service)));
    route.add(["enroll"], &named("enroll"));

    let mut first = task::spawn(route.call(delivery("scarce")));
    let mut second = task::spawn(route.call(delivery("scarce")));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_ready_ok!(task::spawn(route.call(delivery("enroll"))).poll());

    handle.next_request().await.unwrap().1.send_response(Completion::empty());
    assert_ready_ok!(first.poll());
    assert_pending!(second.poll());
    handle.allow(1);
    assert_pending!(second.poll());
    handle.next_request().await.unwrap().1.send_response(Completion::empty());
    assert_ready_ok!(second.poll());
}

#[tokio::test]
async fn a_delivery_that_is_dropped_while_it_waits_for_room_lets_the_next_one_pass() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    handle.allow(0);
    let mut route = Route::default();
    route.add(["scarce"], &Runner::when_ready(JobService::new(service)));
    let mut first = task::spawn(route.call(delivery("scarce")));
    let mut second = task::spawn(route.call(delivery("scarce")));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(first);
    handle.allow(1);
    assert_pending!(second.poll());
    handle.next_request().await.unwrap().1.send_response(Completion::empty());
    assert_ready_ok!(second.poll());
}

#[tokio::test]
async fn a_job_whose_layer_fails_to_get_ready_fails() {
    let (service, mut handle): (Played, Handle) = mock::pair();
    let mut route = Route::default();
    route.add(["enroll"], &Runner::when_ready(JobService::new(service)));
    handle.send_error("closed");
    assert_eq!(route.call(delivery("enroll")).await.unwrap_err().to_string(), "closed");
}

/// Polls another run of the same job while the service takes a delivery, as another thread may.
#[derive(Clone, Default)]
struct Rival(Arc<Mutex<Option<task::Spawn<Routed>>>>);

impl Rival {
    /// The service of a job that is begun by two at once.
    fn service(
        &self,
    ) -> impl Service<Delivery, Response = Completion, Error = BoxError, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static {
        let rival = self.clone();
        service_fn(move |_: Delivery| {
            if let Ok(mut other) = rival.0.try_lock()
                && let Some(other) = &mut *other
            {
                let _ = other.poll();
            }
            async { Ok::<_, BoxError>(Completion::empty()) }
        })
    }

    fn is_woken(&self) -> bool {
        self.0.lock().unwrap().as_ref().is_some_and(task::Spawn::is_woken)
    }

    fn poll(&self) -> Poll<Result<Completion, BoxError>> {
        self.0.lock().unwrap().as_mut().unwrap().poll()
    }
}

#[tokio::test]
async fn a_job_begins_after_those_who_wait_for_the_same_layers_lest_it_block_the_thread_on_which_they_wake() {
    let rival = Rival::default();
    let mut route = Route::default();
    route.add(["enroll"], &Runner::when_ready(JobService::new(rival.service())));
    let mut first = task::spawn(route.call(delivery("enroll")));
    *rival.0.lock().unwrap() = Some(task::spawn(route.call(delivery("enroll"))));

    assert_pending!(first.poll());
    assert!(rival.is_woken() && first.is_woken());
    assert_ready_ok!(rival.poll());
    assert_ready_ok!(first.poll());
}

#[tokio::test]
async fn a_job_without_layers_of_its_own_waits_for_nobody() {
    let rival = Rival::default();
    let mut route = Route::default();
    route.add(["enroll"], &Runner::always_ready(rival.service()));
    let mut first = task::spawn(route.call(delivery("enroll")));
    *rival.0.lock().unwrap() = Some(task::spawn(route.call(delivery("enroll"))));

    assert_ready_ok!(first.poll());
    assert!(!rival.is_woken());
}
