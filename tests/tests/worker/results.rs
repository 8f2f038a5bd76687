//! Waiting for the end of a job, and its result.

use std::time::{Duration, Instant};

use emq::{Cancelled, Completion, Job, JobError, JobResult, JobState, Returns, WaitError};
use serde::{Deserialize, Serialize};
use support::{Proxy, Server};

use crate::errand::{Does, Errand, Place, hangs, ms, start, telling};

impl Returns for Errand {
    type Output = u64;
}

/// A handler that answers twice its job's number, and fails for 13.
fn doubles() -> Does {
    Does::new(|n, _| async move {
        match n {
            13 => Err(JobError::permanent("no such student")),
            14 => Err(JobError::discard("nothing to do")),
            n => Completion::of(&(2 * n)),
        }
    })
}

#[tokio::test]
async fn who_waits_gets_the_result_or_the_error_as_soon_as_the_job_ends() {
    let place = Place::shared("wait").await;
    let worker = start(place.worker(doubles()));
    let mut took = Vec::new();
    for n in 1..10 {
        let before = Instant::now();
        let ticket = place.errand(n).await.unwrap();
        assert_eq!(ticket.wait().await.unwrap(), 2 * n);
        took.push(before.elapsed());
        assert_eq!(ticket.wait().await.unwrap(), 2 * n, "and again");
    }
    // Without being told he would look every few seconds.
    took.sort_unstable();
    assert!(took[took.len() / 4] < ms(1_000), "{took:?}");
    let failed = place.errand(13).await.unwrap();
    assert!(matches!(failed.wait().await, Err(WaitError::Dead { error, .. }) if error == "no such student"));
    let discarded = place.errand(14).await.unwrap();
    assert!(matches!(discarded.wait().await, Err(WaitError::Empty { .. })));
    let removed = place.errand(1).delay(ms(60_000)).await.unwrap();
    let (waited, removal) = tokio::join!(removed.wait(), async { place.queue.remove(removed.id()).await });
    removal.unwrap();
    assert!(matches!(waited, Err(WaitError::Unknown { .. })), "{waited:?}");
    let cancelled = place.errand(1).delay(ms(60_000)).await.unwrap();
    let (waited, cancellation) = tokio::join!(cancelled.wait(), async {
        tokio::time::sleep(ms(50)).await;
        cancelled.cancel().await
    });
    assert_eq!(cancellation.unwrap(), Cancelled::AtOnce);
    assert!(matches!(waited, Err(WaitError::Cancelled { .. })), "{waited:?}");
    worker.stop().await;
}

#[tokio::test]
async fn a_result_can_be_asked_for_without_waiting() {
    let place = Place::shared("result").await;
    let ticket = place.errand(4).await.unwrap();
    let result = async || place.queue.result::<Errand>(ticket.id()).await.unwrap();
    assert_eq!(result().await, JobResult::Unfinished(JobState::Pending));
    let worker = start(place.worker(doubles()));
    ticket.wait().await.unwrap();
    assert_eq!(result().await, JobResult::Done(8));
    worker.stop().await;
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(place.queue.result::<Errand>(unknown).await.unwrap(), JobResult::Unknown);
    #[derive(Serialize, Deserialize)]
    struct Stranger {}
    impl Job for Stranger {
        const NAME: &'static str = "stranger";
    }
    impl Returns for Stranger {
        type Output = String;
    }
    let error = place.queue.result::<Stranger>(ticket.id()).await.unwrap_err();
    assert!(matches!(error, emq::ResultError::Decode { .. }), "{error}");
    assert_eq!(place.client.result::<Errand>(unknown).await.unwrap(), JobResult::Unknown, "in the type's own queue");
}

#[tokio::test]
async fn a_wait_is_over_in_time() {
    let place = Place::shared("late").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).grace(ms(0)));
    let ticket = place.errand(1).await.unwrap();
    told.next().await;
    let error = ticket.wait_for(ms(100)).await.unwrap_err();
    assert!(matches!(error, WaitError::TimedOut { state: JobState::Active, .. }), "{error}");
    worker.stop().await;
}

#[tokio::test]
async fn a_thousand_who_wait_share_one_connection() {
    let server = Server::start().await;
    let place = Place::on(&server, "thousand").await;
    let tickets = place.queue.enqueue_many((0..1_000).map(|n| Errand { n: n + 100 })).await.unwrap();
    let mut waits = tokio::task::JoinSet::new();
    for ticket in tickets {
        waits.spawn(async move { ticket.wait().await });
    }
    // All of them wait.
    let mut raw = place.raw().await;
    let channel = place.key("events");
    loop {
        let listeners = raw.command(&["PUBSUB", "NUMSUB", &channel]).await;
        if listeners.items()[1].int() > 0 {
            assert_eq!(listeners.items()[1].int(), 1);
            break;
        }
        tokio::task::yield_now().await;
    }
    let worker = start(place.worker(doubles()));
    let outputs = tokio::time::timeout(Duration::from_secs(30), waits.join_all()).await.expect("all end");
    let sum: u64 = outputs.into_iter().map(|output| output.unwrap()).sum();
    assert_eq!(sum, (0..1_000).map(|n| 2 * (n + 100)).sum::<u64>());
    worker.stop().await;
    place.until(async || raw_listeners(&place).await == 0).await;
}

async fn raw_listeners(place: &Place) -> i64 {
    let channel = place.key("events");
    place.raw().await.command(&["PUBSUB", "NUMSUB", &channel]).await.items()[1].int()
}

#[tokio::test]
async fn a_wait_outlasts_a_connection_that_breaks() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let waiting = Place::through(&server, &proxy.url(), "broken").await;
    let queue = emq::Client::connect(server.url()).await.unwrap().queue(waiting.name()).unwrap();
    let ticket = waiting.errand(21).await.unwrap();
    let wait = tokio::spawn({
        let ticket = ticket.clone();
        async move { ticket.wait().await }
    });
    waiting.until(async || raw_listeners(&waiting).await == 1).await;
    proxy.sever();
    // It ends while nobody listens, or just after.
    let job = queue.claimer("w").claim(1).await.unwrap().jobs.remove(0);
    queue.complete(&job.lease, Completion::of(&42).unwrap()).await.unwrap();
    let before = Instant::now();
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap().unwrap().unwrap(), 42);
    assert!(before.elapsed() < ms(4_500), "by the look after the reconnect, and not by chance: {:?}", before.elapsed());
    waiting.until(async || raw_listeners(&waiting).await == 0).await;
}
