use std::time::Duration;

use emq::{Admission, DEFAULT_RETENTION, Draft, Removed};

use crate::scene::{MINUTE, Work, assert_after, scene};

#[tokio::test]
async fn a_waiting_job_goes_without_a_trace() {
    let mut scene = scene("remove").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    scene.command(&format!("RPUSH @job:{id}:logs one")).await;
    scene.command(&format!("SET @job:{id}:result half")).await;
    let queue = scene.queue.clone();
    let (removed, changes) = scene.changes(queue.remove(id)).await;
    assert_eq!(removed.unwrap(), Removed::Removed);
    assert_eq!(
        changes,
        [
            "- de:k string = J1",
            "- job:J1 hash attempts = 0",
            "- job:J1 hash did = k",
            "- job:J1 hash more = 1",
            "- job:J1 hash name = work",
            "- job:J1 hash payload = {\"n\":0}",
            "- job:J1 hash state = pending",
            "- job:J1:logs list [0] = one",
            "- job:J1:result string = half",
            "- pending zset J1 @ 0",
        ]
    );
    let again = scene.queue.enqueue(Work { n: 0 }).id(id).await.unwrap();
    assert_eq!(again.admission(), Admission::Enqueued, "nobody ever held a token of it");
}

#[tokio::test]
async fn a_scheduled_and_a_dead_one_go_and_their_ids_stay_taken() {
    let mut scene = scene("remove").await;
    let scheduled = scene.claimed().await;
    scene.queue.snooze(&scheduled, MINUTE).await.unwrap();
    let dead = scene.dead().await;
    for (id, place) in [(scheduled.id(), "schedule"), (dead, "dead")] {
        let queue = scene.queue.clone();
        let before = scene.now().await;
        let (removed, changes) = scene.changes(queue.remove(id)).await;
        let after = scene.now().await;
        assert_eq!(removed.unwrap(), Removed::Removed);
        assert!(changes.iter().any(|line| line.starts_with(&format!("- {place} zset"))), "{changes:?}");
        assert_after(scene.score("done", id).await, DEFAULT_RETENTION, before, after);
        assert_eq!(queue.enqueue(Work { n: 9 }).id(id).await.unwrap().admission(), Admission::Duplicate(id));
        assert_eq!(scene.unchanged(queue.remove(id)).await.unwrap(), Removed::Gone);
    }
}

#[tokio::test]
async fn a_job_that_a_worker_holds_stays() {
    let mut scene = scene("remove").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    assert_eq!(scene.unchanged(queue.remove(lease.id())).await.unwrap(), Removed::Active);
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(scene.unchanged(queue.remove(unknown)).await.unwrap(), Removed::Gone);
}

#[tokio::test]
async fn the_holder_of_a_job_that_was_reaped_and_removed_finds_nothing() {
    let mut scene = scene("remove").await;
    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    let queue = scene.queue.clone();
    queue.reap(None).await.unwrap();
    queue.remove(lease.id()).await.unwrap();
    let settled = scene.unchanged(queue.retry(&lease, Duration::ZERO, "no")).await.unwrap();
    assert_eq!(settled, emq::Settled::Gone);
    let settled = scene.unchanged(queue.complete(&lease, emq::Completion::empty())).await.unwrap();
    assert_eq!(settled, emq::Settled::Stale, "its id is remembered, but it wasn't completed");
}
