//! What time does to a queue happens on the beat, also while the worker has no room for more.

use emq::JobState;

use crate::errand::{Place, hangs, is_done, ms, start, telling, tells};

#[tokio::test]
async fn due_jobs_and_expired_leases_are_moved_also_under_full_load() {
    let place = Place::shared("load").await;
    let dead_workers = place.errand(0).await.unwrap();
    let batch = place.queue.claimer("killed").lease(ms(1)).claim(1).await.unwrap();
    assert_eq!(batch.jobs.len(), 1);
    let (tell, mut told) = telling();
    place.errand(1).priority(-1).await.unwrap();
    let worker = start(place.worker(hangs(&tell)).concurrency(1).beat(ms(100)).grace(ms(0)));
    told.next().await;
    let due = place.errand(2).delay(ms(300)).await.unwrap();
    for id in [dead_workers.id(), due.id()] {
        place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Pending)).await;
    }
    assert_eq!(worker.stats().in_hand, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_marker_that_got_lost_is_made_good_by_the_beat() {
    let place = Place::shared("marker").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(200)));
    place.errand(0).await.unwrap();
    told.next().await;
    place.completed(1).await;
    // Waits without a marker: a worker took it, and was killed before it claimed.
    let mut raw = place.raw().await;
    let row = place.key("job:JOB0KHTOWnGLuC");
    raw.command(&["HSET", &row, "state", "pending", "attempts", "0", "payload", "{\"n\":7}", "name", "errand"]).await;
    let before = std::time::Instant::now();
    raw.command(&["ZADD", &place.key("pending"), "0", "JOB0KHTOWnGLuC"]).await;
    assert_eq!(told.next().await, 7);
    // Without the beat, a worker looks every 5 s.
    assert!(before.elapsed() < ms(4_000), "{:?}", before.elapsed());
    worker.stop().await;
}

#[tokio::test]
async fn a_reaper_that_fails_doesnt_keep_due_jobs_from_being_promoted() {
    let place = Place::shared("reaper").await;
    place.errand(0).await.unwrap();
    place.queue.claimer("killed").lease(ms(1)).claim(1).await.unwrap();
    place.raw().await.command(&["SET", &place.key("dead"), "not a set"]).await;
    assert!(place.queue.reap(Some(1)).await.is_err(), "this test needs a reaper that fails");
    let due = place.errand(1).delay(ms(50)).await.unwrap();
    let worker = start(place.worker(is_done()).max_stalled(1).beat(ms(100)));
    place.until(async || place.queue.state(due.id()).await.unwrap() == Some(JobState::Finished)).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_promotion_that_fails_doesnt_keep_expired_leases_from_being_reaped() {
    let place = Place::shared("promoter").await;
    place.errand(0).await.unwrap();
    let lost = place.queue.claimer("killed").lease(ms(1)).claim(1).await.unwrap().jobs[0].lease;
    place.raw().await.command(&["SET", &place.key("parked"), "not a set"]).await;
    assert!(place.queue.promote().await.is_err(), "this test needs a promotion that fails");
    let worker = start(place.worker(is_done()).beat(ms(100)));
    place.until(async || place.queue.state(lost.id()).await.unwrap() == Some(JobState::Finished)).await;
    worker.stop().await;
}

#[tokio::test]
async fn what_was_kept_long_enough_is_forgotten_by_the_beat() {
    let place = Place::shared("trim").await;
    place.errand(0).await.unwrap();
    let lease = place.queue.claimer("any").claim(1).await.unwrap().jobs[0].lease;
    place.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    place.raw().await.line(&format!("ZADD {} XX 1 {}", place.key("done"), lease.id())).await;
    let worker = start(place.worker(is_done()).beat(ms(20)));
    place.until(async || place.queue.counts().await.unwrap().remembered == 0).await;
    worker.stop().await;
}
