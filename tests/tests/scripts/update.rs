use std::future::IntoFuture as _;
use std::time::{Duration, SystemTime};

use emq::{Draft, UpdateError, Updated};

use crate::scene::{MINUTE, Work, assert_after, scene};

#[tokio::test]
async fn a_waiting_job_gets_another_payload_and_priority_and_stands_where_that_puts_it() {
    let mut scene = scene("update").await;
    let queue = scene.queue.clone();
    let (first, second) = (scene.enqueue().await, scene.enqueue().await);
    let (updated, changes) =
        scene.changes(queue.update(second).payload(&Work { n: 9 }).priority(-1).into_future()).await;
    assert_eq!(updated.unwrap(), Updated::Updated);
    let changes: Vec<_> = changes.into_iter().filter(|line| !line.contains("updated")).collect();
    assert_eq!(
        changes,
        [
            "~ job:J2 hash payload = {\"n\":9} (was {\"n\":1})",
            "+ job:J2 hash priority = -1",
            "~ pending zset J2 @ -1 (was 0)",
        ]
    );
    let jobs = scene.claimer().claim(2).await.unwrap().jobs;
    assert_eq!(jobs.iter().map(|job| job.lease.id()).collect::<Vec<_>>(), [second, first]);
    assert_eq!(jobs[0].decode::<Work>().unwrap(), Work { n: 9 });
}

#[tokio::test]
async fn a_job_gets_another_time_and_runs_now_if_it_is_to() {
    let mut scene = scene("update").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).group("north").priority(3)).await;
    let before = scene.now().await;
    assert_eq!(queue.update(id).delay(MINUTE).await.unwrap(), Updated::Updated);
    let after = scene.now().await;
    assert_after(scene.score("schedule", id).await, MINUTE, before, after);
    assert_eq!(scene.field(id, "state").await.as_deref(), Some("scheduled"));
    assert_eq!(queue.counts().await.unwrap().scheduled, 1);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    queue.update(id).at(time).await.unwrap();
    assert_eq!(scene.score("schedule", id).await, 4_102_444_800_000.0);
    queue.update(id).priority(-2).await.unwrap();
    assert_eq!(scene.score("schedule", id).await, 4_102_444_800_000.0, "its time stays");

    scene.command("DEL @marker").await;
    assert_eq!(queue.run_now(id).await.unwrap(), Updated::Updated);
    assert_eq!(scene.score("g:north:pending", id).await, -2.0);
    assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "a worker wakes");
}

#[tokio::test]
async fn a_job_that_a_worker_holds_or_that_has_ended_stays_as_it_is() {
    let mut scene = scene("update").await;
    let queue = scene.queue.clone();
    let lease = scene.claimed().await;
    let update = |id| queue.update(id).priority(1).into_future();
    assert_eq!(scene.unchanged(update(lease.id())).await.unwrap(), Updated::Active);
    let dead = scene.dead().await;
    assert_eq!(scene.unchanged(update(dead)).await.unwrap(), Updated::Dead);
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(scene.unchanged(update(unknown)).await.unwrap(), Updated::Gone);
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_an_error_before_anything_is_sent() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Large(String);
    impl emq::Job for Large {
        const NAME: &'static str = "large";
    }
    let mut scene = scene("update").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue().await;
    let error = scene.unchanged(queue.update(id).payload(&Large("x".repeat(2 << 20))).into_future()).await.unwrap_err();
    assert!(matches!(error, UpdateError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_worker_that_lost_the_job_can_not_settle_what_it_has_not_seen() {
    let mut scene = scene("update").await;
    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    scene.queue.reap(None).await.unwrap();
    scene.queue.update(lease.id()).delay(MINUTE).await.unwrap();
    let call = scene.queue.clone();
    let call = async move { call.complete(&lease, emq::Completion::empty()).await };
    assert_eq!(scene.unchanged(call).await.unwrap(), emq::Settled::Stale);
    assert_eq!(scene.queue.state(lease.id()).await.unwrap(), Some(emq::JobState::Scheduled));
}

#[tokio::test]
async fn a_parked_job_is_changed_in_its_place() {
    let mut scene = scene("update").await;
    let unique = || emq::Unique::key("k").then_once();
    scene.enqueue_as(Draft::of(Work { n: 0 }).unique(unique())).await;
    let lease = scene.claim().await.lease;
    let parked = scene.enqueue_as(Draft::of(Work { n: 1 }).unique(unique())).await;
    scene.queue.update(parked).delay(MINUTE).priority(3).await.unwrap();
    assert_eq!(scene.queue.state(parked).await.unwrap(), Some(emq::JobState::Parked));
    scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    assert_eq!(scene.queue.state(parked).await.unwrap(), Some(emq::JobState::Scheduled), "its own time comes later");
    scene.queue.run_now(parked).await.unwrap();
    assert_eq!(scene.score("pending", parked).await, 3.0);
}
