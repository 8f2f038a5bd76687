use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::time::sleep;
use tokio_test::{assert_pending, assert_ready_eq, task};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::{SECOND, Server, delivery};
use crate::{
    job::Completion,
    layer::{Delivery, Ended, LeaseLayer, Outcome},
    store::Settled,
};

fn done() -> Ended {
    Ended::Settled { outcome: Outcome::Done(Completion::empty()), settled: Settled::Accepted }
}

/// Says when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_outlasts_its_lease_many_times_over_runs_to_its_end() {
    let server = Server::that_renews();
    let inner = service_fn(async |_: Delivery| {
        sleep(300 * SECOND).await;
        Ok::<_, Infallible>(done())
    });
    let keeper = server.keeper();
    let ended = LeaseLayer::new(&keeper).layer(inner).oneshot(delivery()).await;
    assert_eq!(ended, Ok(done()));
    assert!(keeper.in_hand().is_empty(), "its lease is kept no longer");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_drops_the_run_before_the_loss_is_reported() {
    for server in [Server::that_refuses(), Server::that_is_away()] {
        let dropped = Arc::new(AtomicBool::new(false));
        let in_run = Arc::clone(&dropped);
        let inner = service_fn(move |_: Delivery| {
            let flag = Flag(Arc::clone(&in_run));
            async move {
                std::future::pending::<()>().await;
                drop(flag);
                Ok::<_, Infallible>(done())
            }
        });
        let keeper = server.keeper();
        let delivery = delivery();
        let mut service = LeaseLayer::new(&keeper).layer(inner);
        let mut run = task::spawn(service.call(delivery.clone()));
        assert_pending!(run.poll());
        sleep(31 * SECOND).await;
        assert!(run.is_woken());
        assert!(!dropped.load(Ordering::SeqCst));
        assert_ready_eq!(run.poll(), Ok(Ended::Lost));
        assert!(dropped.load(Ordering::SeqCst), "while the response itself is still there");
        assert!(delivery.context().is_cancelled());
        assert!(keeper.in_hand().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_dropped_lets_the_lease_go() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let inner = service_fn(|_: Delivery| std::future::pending::<Result<Ended, Infallible>>());
    let run = LeaseLayer::new(&keeper).layer(inner).call(delivery());
    assert_eq!(keeper.in_hand().len(), 1, "kept from the call on, before the first poll");
    drop(run);
    assert!(keeper.in_hand().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_in_the_moment_of_the_loss_has_ended() {
    let server = Server::that_is_away();
    let keeper = server.keeper();
    let inner = service_fn(async |_: Delivery| {
        sleep(30 * SECOND).await;
        Ok::<_, Infallible>(done())
    });
    let mut service = LeaseLayer::new(&keeper).layer(inner);
    let mut run = task::spawn(service.call(delivery()));
    assert_pending!(run.poll());
    sleep(31 * SECOND).await;
    assert_ready_eq!(run.poll(), Ok(done()));
}

#[tokio::test]
async fn it_is_ready_when_what_it_wraps_is() {
    #[derive(Debug)]
    struct NotReady;
    impl Service<Delivery> for NotReady {
        type Response = Ended;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Ended, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _: Delivery) -> Self::Future {
            unreachable!("it isn't ready")
        }
    }
    let server = Server::that_renews();
    let mut service = LeaseLayer::new(&server.keeper()).layer(NotReady);
    assert_pending!(task::spawn(service.ready()).poll());
}
