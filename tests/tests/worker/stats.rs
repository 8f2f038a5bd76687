//! A worker's numbers, and what `build` refuses.

use std::time::Duration;

use emq::{BuildProblem, Completion, Handler, Job, JobContext, JobError, JobOptions, Worker, inject::Scope};
use serde::{Deserialize, Serialize};
use support::{Proxy, Server};

use crate::errand::{Does, Errand, Place, hangs, is_done, ms, start, telling};

#[tokio::test]
async fn each_way_to_end_is_counted_where_it_belongs() {
    let place = Place::shared("stats").await;
    let does = Does::new(|n, ctx: JobContext| {
        std::future::ready(match (n, ctx.fence()) {
            (1, 1) => Err(JobError::new("reset")),
            (2, _) => Err(JobError::permanent("no such student")),
            (3, 1) => Err(JobError::snooze(ms(1))),
            (4, _) => Err(JobError::discard("gone")),
            _ => Ok(Completion::empty()),
        })
    });
    let worker = start(place.worker(does));
    place.enqueue(5).await;
    place.completed(4).await;
    place.until(async || worker.stats().in_hand == 0 && worker.stats().claimed == 7).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.retried, stats.dead, stats.snoozed, stats.discarded), (3, 1, 1, 1, 1));
    assert_eq!((stats.claimed, stats.failed(), stats.in_hand), (7, 2, 0));
    assert_eq!((stats.released, stats.lost, stats.stale, stats.unsettled, stats.dropped), (0, 0, 0, 0, 0));
}

#[tokio::test]
async fn what_is_in_hand_can_be_seen_while_it_is() {
    let place = Place::shared("hand").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).concurrency(3).grace(ms(0)));
    assert_eq!(worker.stats().in_hand, 0);
    place.enqueue(5).await;
    for _ in 0..3 {
        told.next().await;
    }
    assert_eq!(worker.stats().in_hand, 3);
    let handle = worker.handle.clone();
    let last = worker.stop().await;
    assert_eq!(last.released, 3);
    assert_eq!(handle.stats(), last, "a handle knows the numbers still");
}

#[tokio::test]
async fn reconnects_are_counted_and_are_known_after_the_end() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "reconnects").await;
    let worker = start(place.worker(is_done()));
    place.errand(0).await.unwrap();
    place.completed(1).await;
    assert_eq!(worker.stats().reconnects, 0);
    proxy.sever();
    // That of the client, and that which waits.
    place.until(async || worker.stats().reconnects >= 2).await;
    place.errand(1).await.unwrap();
    place.completed(2).await;
    let seen = worker.stats().reconnects;
    let handle = worker.handle.clone();
    worker.stop().await;
    assert!(handle.stats().reconnects >= seen);
}

/// A job whose settings can't work.
#[derive(Serialize, Deserialize)]
struct Hopeless {}

impl Job for Hopeless {
    const NAME: &'static str = "hopeless";
    const OPTIONS: JobOptions = JobOptions::new().lease(Duration::ZERO).timeout(Duration::ZERO);
}

impl<S: Send + Sync + 'static> Handler<S> for Hopeless {
    async fn run(self, _: Scope<S>) -> Result<Completion, JobError> {
        Ok(Completion::empty())
    }
}

/// A job that answers to another's old name.
#[derive(Serialize, Deserialize)]
struct Heir {}

impl Job for Heir {
    const NAME: &'static str = "heir";
    const ALIASES: &'static [&'static str] = &["errand_of_old"];
    const LOCATION: &'static str = "src/heir.rs:7";
}

impl<S: Send + Sync + 'static> Handler<S> for Heir {
    async fn run(self, _: Scope<S>) -> Result<Completion, JobError> {
        Ok(Completion::empty())
    }
}

#[tokio::test]
async fn build_reports_every_problem_at_once() {
    let place = Place::shared("build").await;
    let error = Worker::builder(&place.client)
        .state(is_done())
        .register::<Errand>()
        .register::<Heir>()
        .register::<Hopeless>()
        .queue("has space")
        .queue_concurrency("unserved", 0)
        .concurrency(0)
        .lease(ms(1))
        .beat(ms(0))
        .max_stalled(0)
        .build()
        .unwrap_err();
    let texts: Vec<_> = error.problems().iter().map(ToString::to_string).collect();
    for part in [
        "two jobs answer to the name \"errand_of_old\"",
        "src/heir.rs:7",
        "the lease of the job \"hopeless\" is 0ns",
        "the timeout of the job \"hopeless\" is 0ns",
        "has space",
        "unserved",
        "a concurrency of 0 for the worker",
        "a concurrency of 0 for the queue \"unserved\"",
        "lease is 1ms",
        "beat is 0ns",
        "max_stalled is 0",
    ] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part:?} is missing in {texts:#?}");
        assert!(error.to_string().contains(part));
    }
    let none = Worker::builder(&place.client).build().unwrap_err();
    assert_eq!(none.problems(), [BuildProblem::NoJobs]);
}

#[tokio::test]
async fn settings_without_end_are_taken_as_they_are_meant() {
    let place = Place::shared("endless").await;
    let worker = start(place.worker(is_done()).lease(Duration::MAX).beat(Duration::MAX).grace(Duration::MAX));
    place.enqueue(3).await;
    place.completed(3).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_whose_server_is_away_at_its_start_waits_for_it() {
    let server = Server::start().await;
    let place = Place::on(&server, "late").await;
    let worker = place.worker(is_done());
    server.kill().await;
    let worker = start(worker);
    server.restart().await;
    place.enqueue(3).await;
    place.completed(3).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_cant_connect_says_so_at_its_start() {
    let server = Server::start().await;
    let client = emq::Client::builder(server.url()).retry_for(ms(100)).connect().await.unwrap();
    let place = Place::of(&server, client, "absent");
    let worker = place.worker(is_done()).build().unwrap();
    server.kill().await;
    let error = worker.run().await.unwrap_err();
    let text = format!("the worker can't start: the server at 127.0.0.1:{} can't be reached", server.port());
    assert!(error.to_string().starts_with(&text), "{error}");
}
