use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready_eq, task};
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

use super::{Dropped, SECOND, delivery};
use crate::{
    job::Completion,
    latch::Latch,
    layer::{Delivery, Ended, Outcome, SettleLayer, Writer},
    store::{CallError, Lease, Settled},
};

type Written = Result<Settled, CallError>;

/// Plays the server: takes down what is to be written, and answers as the test says.
struct Server {
    written: Mutex<Vec<(Lease, Outcome)>>,
    answer: Box<dyn Fn(usize) -> BoxFuture<'static, Written> + Send + Sync>,
}

impl Server {
    /// `answer` is given how many calls came before.
    fn new<F: Future<Output = Written> + Send + 'static>(
        answer: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { written: Mutex::default(), answer: Box::new(move |n| Box::pin(answer(n))) })
    }

    fn that_accepts() -> Arc<Self> {
        Self::new(|_| std::future::ready(Ok(Settled::Accepted)))
    }

    fn that_is_away() -> Arc<Self> {
        Self::new(|_| std::future::ready(Err(away())))
    }

    fn written(&self) -> Vec<Outcome> {
        self.written.lock().unwrap().iter().map(|(_, outcome)| outcome.clone()).collect()
    }

    fn layer(self: &Arc<Self>) -> SettleLayer {
        self.layer_until(Arc::default())
    }

    fn layer_until(self: &Arc<Self>, give_back: Arc<Latch>) -> SettleLayer {
        SettleLayer::with(Arc::clone(self) as Arc<dyn Writer>, give_back)
    }
}

impl Writer for Server {
    fn write<'a>(&'a self, delivery: &'a Delivery, outcome: &'a Outcome) -> BoxFuture<'a, Written> {
        let mut written = self.written.lock().unwrap();
        let before = written.len();
        written.push((delivery.lease(), outcome.clone()));
        (self.answer)(before)
    }
}

fn away() -> CallError {
    CallError::Unknown { source: Arc::new(std::io::Error::other("away")) }
}

fn done() -> Outcome {
    Outcome::Done(Completion::empty())
}

fn settled(settled: Settled) -> Result<Ended, Infallible> {
    Ok(Ended::Settled { outcome: done(), settled })
}

#[tokio::test(start_paused = true)]
async fn a_run_is_written_once_under_its_token() {
    for answer in [Settled::Accepted, Settled::Repeated, Settled::Stale, Settled::Gone] {
        let server = Server::new(move |_| std::future::ready(Ok(answer)));
        let delivery = delivery();
        let service = server.layer().layer(service_fn(async |_: Delivery| Ok::<_, Infallible>(done())));
        assert_eq!(service.oneshot(delivery.clone()).await, settled(answer));
        assert_eq!(*server.written.lock().unwrap(), [(delivery.lease(), done())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_again_and_the_handler_isnt() {
    let server = Server::new(|n| std::future::ready(if n < 50 { Err(away()) } else { Ok(Settled::Repeated) }));
    let runs = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&runs);
    let inner = service_fn(move |_: Delivery| {
        *counted.lock().unwrap() += 1;
        std::future::ready(Ok::<_, Infallible>(done()))
    });
    assert_eq!(server.layer().layer(inner).oneshot(delivery()).await, settled(Settled::Repeated));
    assert_eq!((server.written().len(), *runs.lock().unwrap()), (51, 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_given_up_when_the_lease_would_have_ended() {
    let server = Server::that_is_away();
    let start = Instant::now();
    let inner = service_fn(async |_: Delivery| {
        sleep(12 * SECOND).await;
        Ok::<_, Infallible>(done())
    });
    let ended = server.layer().layer(inner).oneshot(delivery()).await;
    assert_eq!(ended, Ok(Ended::Unsettled { outcome: done() }));
    let gave_up = start.elapsed();
    assert!(gave_up > 29 * SECOND && gave_up <= 30 * SECOND, "{gave_up:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_after_its_lease_still_has_its_chance() {
    let late = || {
        service_fn(async |_: Delivery| {
            sleep(31 * SECOND).await;
            Ok::<_, Infallible>(done())
        })
    };
    let server = Server::that_accepts();
    assert_eq!(server.layer().layer(late()).oneshot(delivery()).await, settled(Settled::Accepted));
    let server = Server::that_is_away();
    let ended = server.layer().layer(late()).oneshot(delivery()).await;
    assert_eq!(ended, Ok(Ended::Unsettled { outcome: done() }));
    assert_eq!(server.written().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_lease_would_have_ended_counts() {
    let server = Server::new(|_| async {
        sleep(31 * SECOND).await;
        Ok(Settled::Accepted)
    });
    let inner = service_fn(async |_: Delivery| Ok::<_, Infallible>(done()));
    assert_eq!(server.layer().layer(inner).oneshot(delivery()).await, settled(Settled::Accepted));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_closed_is_not_waited_for() {
    let server = Server::new(|_| std::future::ready(Err(CallError::Closed)));
    let inner = service_fn(async |_: Delivery| Ok::<_, Infallible>(done()));
    let ended = server.layer().layer(inner).oneshot(delivery()).await;
    assert_eq!(ended, Ok(Ended::Unsettled { outcome: done() }));
    assert_eq!(server.written().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_given_back_is_dropped_before_its_release_is_written() {
    let dropped = Dropped::default();
    let seen = dropped.clone();
    let server = Server::new(move |_| {
        assert!(seen.is_set(), "nobody may run the job while it is given to others");
        std::future::ready(Ok(Settled::Accepted))
    });
    let give_back = Arc::new(Latch::default());
    let in_run = dropped.clone();
    let mut service = server.layer_until(Arc::clone(&give_back)).layer(service_fn(move |_: Delivery| {
        let guard = in_run.guard();
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok::<_, Infallible>(done())
        }
    }));
    let delivery = delivery();
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery.clone()));
    assert_pending!(run.poll());
    give_back.close();
    assert!(run.is_woken());
    let released = Ended::Settled { outcome: Outcome::Release, settled: Settled::Accepted };
    assert_ready_eq!(run.poll(), Ok(released));
    assert!(delivery.context().is_cancelled());
    assert_eq!(server.written(), [Outcome::Release]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_done_in_the_moment_of_giving_back_is_done() {
    let server = Server::that_accepts();
    let give_back = Arc::new(Latch::default());
    let mut service = server.layer_until(Arc::clone(&give_back)).layer(service_fn(async |_: Delivery| {
        sleep(SECOND).await;
        Ok::<_, Infallible>(done())
    }));
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    sleep(2 * SECOND).await;
    give_back.close();
    assert_ready_eq!(run.poll(), settled(Settled::Accepted));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_being_settled_isnt_given_back() {
    let server = Server::new(|n| async move {
        sleep(SECOND).await;
        if n == 0 { Err(away()) } else { Ok(Settled::Repeated) }
    });
    let give_back = Arc::new(Latch::default());
    let inner = service_fn(async |_: Delivery| Ok::<_, Infallible>(done()));
    let mut service = server.layer_until(Arc::clone(&give_back)).layer(inner);
    let mut run = task::spawn(service.ready().await.unwrap().call(delivery()));
    assert_pending!(run.poll());
    give_back.close();
    assert_eq!(run.await, settled(Settled::Repeated));
    assert_eq!(server.written(), [done(), done()]);
}
