//! Layers of Tower's own and a user's, in the whole stack, with a recorder in place of the server.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{
    Service, ServiceExt as _,
    buffer::BufferLayer,
    layer::layer_fn,
    limit::{ConcurrencyLimitLayer, RateLimitLayer},
    load_shed::LoadShedLayer,
    service_fn,
    timeout::TimeoutLayer,
};

use super::SECOND;
use crate::{
    job::{BoxError, Completion, JobError},
    layer::{
        Delivery, Ended, JobLayer, JobService, LeaseKeeper, Outcome, Route, TraceLayer, UserLayer, Writer,
        stack::{self, Stack},
    },
    store::{CallError, Settled},
    testing,
};

/// Accepts everything.
struct Accepts;

impl Writer for Accepts {
    fn write<'a>(&'a self, _: &'a Delivery, _: &'a Outcome) -> BoxFuture<'a, Result<Settled, CallError>> {
        Box::pin(std::future::ready(Ok(Settled::Accepted)))
    }
}

/// The stack of a worker with these layers of its own, and the jobs `slow`, which takes a second, `stuck`, which takes
/// for ever, and whatever `route` has more.
fn stack_of(layers: &[UserLayer], mut route: Route) -> Stack {
    let slow = service_fn(async |_: Delivery| {
        sleep(SECOND).await;
        Ok::<_, JobError>(Completion::empty())
    });
    let stuck = service_fn(|_: Delivery| std::future::pending::<Result<Completion, JobError>>());
    route.add(["slow"], &stack::job(&[], slow));
    route.add(["stuck"], &stack::job(&[], stuck));
    let outside = stack::Outside {
        trace: TraceLayer::new(),
        keeper: LeaseKeeper::detached(),
        writer: Arc::new(Accepts),
        give_back: Arc::default(),
    };
    stack::stack(outside, layers, route)
}

fn stack_with(layer: impl JobLayer) -> Stack {
    stack_of(&[UserLayer::new(layer)], Route::default())
}

async fn outcome(stack: &mut Stack, name: &str) -> Outcome {
    let Ok(ready) = stack.ready().await;
    match ready.call(testing::delivery(name)).await {
        Ok(Ended::Settled { outcome, .. }) => outcome,
        other => panic!("{other:?}"),
    }
}

fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done(_))
}

fn fails_with(outcome: &Outcome, text: &str) -> bool {
    matches!(outcome, Outcome::Retry { error, .. } if error.contains(text))
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_tower_fails_what_takes_too_long() {
    let mut stack = stack_with(TimeoutLayer::new(5 * SECOND));
    let start = Instant::now();
    let outcome_of_stuck = outcome(&mut stack, "stuck").await;
    assert!(fails_with(&outcome_of_stuck, "timed out"), "{outcome_of_stuck:?}");
    assert_eq!(start.elapsed(), 5 * SECOND);
    assert!(is_done(&outcome(&mut stack, "slow").await));
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_ready_for_as_many_jobs_as_a_concurrency_limit_allows() {
    let mut stack = stack_with(ConcurrencyLimitLayer::new(2));
    let mut runs = Vec::new();
    for _ in 0..2 {
        let Ok(ready) = stack.ready().await;
        runs.push(tokio::spawn(ready.call(testing::delivery("slow"))));
    }
    let mut third = task::spawn(stack.ready());
    assert_pending!(third.poll().map(drop));
    sleep(2 * SECOND).await;
    assert!(third.is_woken());
    assert!(third.poll().is_ready());
    assert!(runs.iter().all(tokio::task::JoinHandle::is_finished));
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_ready_as_often_as_a_rate_limit_allows() {
    let mut stack = stack_with(RateLimitLayer::new(3, 10 * SECOND));
    let start = Instant::now();
    let mut started = Vec::new();
    for _ in 0..7 {
        let Ok(ready) = stack.ready().await;
        started.push(start.elapsed().as_secs());
        tokio::spawn(ready.call(testing::delivery("slow")));
    }
    assert_eq!(started, [0, 0, 0, 10, 10, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_load_shed_fails_what_there_is_no_room_for() {
    let layers = [UserLayer::new(LoadShedLayer::new()), UserLayer::new(ConcurrencyLimitLayer::new(1))];
    let mut stack = stack_of(&layers, Route::default());
    let Ok(ready) = stack.ready().await;
    let first = tokio::spawn(ready.call(testing::delivery("slow")));
    let second = outcome(&mut stack, "slow").await;
    assert!(fails_with(&second, "overloaded"), "{second:?}");
    assert!(first.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_buffer_fits_and_its_jobs_are_done() {
    let mut stack = stack_with(BufferLayer::<Delivery>::new(4));
    for _ in 0..10 {
        assert!(is_done(&outcome(&mut stack, "slow").await));
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_of_one_job_limits_that_job_alone() {
    let mut route = Route::default();
    let scarce = service_fn(async |_: Delivery| {
        sleep(SECOND).await;
        Ok::<_, JobError>(Completion::empty())
    });
    route.add(["scarce"], &stack::job(&[UserLayer::new(ConcurrencyLimitLayer::new(1))], scarce));
    let mut stack = stack_of(&[], route);
    let start = Instant::now();
    let mut runs = Vec::new();
    for name in ["scarce", "scarce", "scarce", "slow", "slow"] {
        let Ok(ready) = stack.ready().await;
        let run = ready.call(testing::delivery(name));
        runs.push(tokio::spawn(async move {
            let _ = run.await;
            (name, start.elapsed().as_secs())
        }));
    }
    let mut ended = Vec::new();
    for run in runs {
        ended.push(run.await.unwrap());
    }
    assert_eq!(ended, [("scarce", 1), ("scarce", 2), ("scarce", 3), ("slow", 1), ("slow", 1)]);
}

/// A layer of one's own: takes down its name on the way in and out.
fn noting(name: &'static str, notes: &Arc<Mutex<Vec<String>>>) -> UserLayer {
    let notes = Arc::clone(notes);
    UserLayer::new(layer_fn(move |inner| Noting { name, notes: Arc::clone(&notes), inner }))
}

struct Noting {
    name: &'static str,
    notes: Arc<Mutex<Vec<String>>>,
    inner: JobService,
}

impl Service<Delivery> for Noting {
    type Response = Completion;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Completion, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let (name, notes, run) = (self.name, Arc::clone(&self.notes), self.inner.call(delivery));
        Box::pin(async move {
            notes.lock().unwrap().push(format!("> {name}"));
            let result = run.await;
            notes.lock().unwrap().push(format!("< {name}"));
            result
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_layer_is_the_outermost_and_those_of_the_job_come_last() {
    let notes = Arc::default();
    let mut route = Route::default();
    let of_job = [noting("job's first", &notes), noting("job's second", &notes)];
    route.add(["noted"], &stack::job(&of_job, service_fn(async |_: Delivery| Ok::<_, JobError>(Completion::empty()))));
    let mut stack = stack_of(&[noting("first", &notes), noting("second", &notes)], route);
    assert!(is_done(&outcome(&mut stack, "noted").await));
    let expected = [
        "> first",
        "> second",
        "> job's first",
        "> job's second",
        "< job's second",
        "< job's first",
        "< second",
        "< first",
    ];
    assert_eq!(*notes.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_panics_fails_the_job_and_the_next_one_is_done() {
    let calls = Arc::new(Mutex::new(0));
    let panicking = layer_fn(move |inner: JobService| {
        let calls = Arc::clone(&calls);
        let mut inner = inner;
        service_fn(move |delivery: Delivery| {
            *calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            assert!(*calls.lock().unwrap() > 1, "the layer's fault");
            inner.call(delivery)
        })
    });
    let mut stack = stack_with(panicking);
    let first = outcome(&mut stack, "slow").await;
    assert!(fails_with(&first, "the job panicked: the layer's fault"), "{first:?}");
    assert!(is_done(&outcome(&mut stack, "slow").await));
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_take_a_job_off_the_handlers_hands() {
    let refusing = layer_fn(|_: JobService| {
        service_fn(async |_: Delivery| Err::<Completion, BoxError>(JobError::discard("not today").into()))
    });
    let mut stack = stack_with(refusing);
    assert_eq!(outcome(&mut stack, "slow").await, Outcome::Discard { why: "not today".into() });
}

#[tokio::test(start_paused = true)]
async fn a_whole_stack_never_fails_and_one_poll_is_enough_for_what_doesnt_wait() {
    let mut route = Route::default();
    route.add(["quick"], &stack::job(&[], service_fn(async |_: Delivery| Ok::<_, JobError>(Completion::empty()))));
    let mut stack = stack_of(&[], route);
    let Ok(ready) = stack.ready().await;
    let mut run = task::spawn(ready.call(testing::delivery("quick")));
    let ended: Result<Ended, Infallible> = assert_ready!(run.poll());
    assert!(matches!(ended, Ok(Ended::Settled { .. })));
}
