use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

use super::JobTest;
use crate::{Backoff, Completion, Handler, Job, JobError, JobOptions, inject::Scope, layer::Outcome};

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
enum Enrol {
    Done,
    Fails,
    Panics,
    Hangs,
    Tenant,
    Failures,
}

impl Job for Enrol {
    const NAME: &'static str = "enrol";
    const OPTIONS: JobOptions =
        JobOptions::new().max_attempts(3).timeout(MINUTE).backoff(Backoff::fixed(Duration::from_secs(5)).jitter(0.0));
}

impl Handler<u64> for Enrol {
    async fn run(self, scope: Scope<u64>) -> Result<Completion, JobError> {
        match self {
            Self::Done => Completion::of(scope.state()),
            Self::Fails => Err(JobError::new("reset")),
            Self::Panics => panic!("no such table"),
            Self::Hangs => std::future::pending().await,
            Self::Tenant => Completion::of(&scope.context().header("tenant")),
            Self::Failures => Completion::of(&(scope.context().failures(), scope.context().fence())),
        }
    }
}

fn done(result: &impl Serialize) -> Outcome {
    Outcome::Done(Completion::of(result).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_job_is_run_as_a_worker_would_and_what_it_would_write_is_the_answer() {
    assert_eq!(JobTest::of(Enrol::Done).run(7).await, done(&7));
    let retry = Outcome::Retry { delay: Duration::from_secs(5), error: "reset".into() };
    assert_eq!(JobTest::of(Enrol::Fails).run(7).await, retry);
    assert_eq!(JobTest::of(Enrol::Fails).failures(1).run(7).await, retry);
    assert_eq!(JobTest::of(Enrol::Fails).failures(2).run(7).await, Outcome::Dead { error: "reset".into() });
    assert_eq!(
        JobTest::of(Enrol::Panics).failures(2).run(7).await,
        Outcome::Dead { error: "the job panicked: no such table".into() }
    );
}

#[tokio::test(start_paused = true)]
async fn the_jobs_timeout_and_the_tests_layers_apply() {
    let outcome = JobTest::of(Enrol::Hangs).failures(2).run(7).await;
    assert_eq!(outcome, Outcome::Dead { error: "the job ran longer than its timeout of 60s".into() });
    let outcome = JobTest::of(Enrol::Hangs).layer(TimeoutLayer::new(MINUTE / 2)).failures(2).run(7).await;
    assert_eq!(outcome, Outcome::Dead { error: "request timed out".into() });
    assert_eq!(JobTest::of(Enrol::Done).layer(ConcurrencyLimitLayer::new(1)).run(7).await, done(&7));
}

#[tokio::test]
async fn what_the_job_is_told_of_its_run_is_what_the_test_says() {
    assert_eq!(JobTest::of(Enrol::Tenant).header("tenant", "north").run(7).await, done(&"north"));
    assert_eq!(JobTest::of(Enrol::Failures).failures(2).run(7).await, done(&(2, 3)));
}

#[tokio::test]
async fn a_payload_of_other_bytes_is_decoded_as_a_worker_would() {
    assert_eq!(JobTest::of(Enrol::Fails).payload("\"Done\"").run(7).await, done(&7));
    let outcome = JobTest::of(Enrol::Done).payload(b"\xff\x00".as_slice()).run(7).await;
    assert!(matches!(&outcome, Outcome::Dead { error } if error.starts_with("the payload can't be decoded")));
}

#[tokio::test]
async fn values_of_any_size_and_any_bytes_are_a_run_like_any_other() {
    for failures in [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX] {
        let expected = done(&(failures, u64::from(failures) + 1));
        assert_eq!(JobTest::of(Enrol::Failures).failures(failures).run(7).await, expected);
    }
    for payload in (0..=255).map(|byte| vec![byte; 3]).chain([Vec::new(), vec![b'['; 100_000], vec![0; 10 << 20]]) {
        let outcome = JobTest::of(Enrol::Done).payload(payload).run(7).await;
        assert!(matches!(outcome, Outcome::Dead { .. }), "{outcome:?}");
    }
    let odd = "\0\r\n\u{202e}🦀";
    assert_eq!(JobTest::of(Enrol::Tenant).header(odd, "").header("tenant", odd).run(7).await, done(&odd));
}

#[tokio::test]
async fn a_test_that_is_given_up_drops_the_run() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    #[derive(Serialize, Deserialize)]
    struct Hangs {}
    impl Job for Hangs {
        const NAME: &'static str = "hangs";
    }
    impl Handler<Arc<AtomicBool>> for Hangs {
        async fn run(self, scope: Scope<Arc<AtomicBool>>) -> Result<Completion, JobError> {
            let _flag = Flag(Arc::clone(scope.state()));
            std::future::pending().await
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let mut run = tokio_test::task::spawn(JobTest::of(Hangs {}).run(Arc::clone(&dropped)));
    tokio_test::assert_pending!(run.poll());
    drop(run);
    assert!(dropped.load(Ordering::SeqCst));
}
