use emq::{Admission, Draft, Revived};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn brings_a_dead_letter_back_with_a_fresh_budget() {
    let mut scene = scene("revive").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    scene.claim().await;
    scene.expire(id).await;
    scene.queue.reap(None).await.unwrap();
    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "broken").await.unwrap();
    scene.command("DEL @marker").await;
    let queue = scene.queue.clone();
    let (revived, changes) = scene.changes(queue.revive(id)).await;
    assert_eq!(revived.unwrap(), Revived::Revived);
    assert_eq!(
        changes,
        [
            "+ de:k string = J1",
            "- dead zset J1 @ T",
            "- job:J1 hash failures = 1",
            "~ job:J1 hash settled = revive (was bury 2)",
            "- job:J1 hash stalled = 1",
            "~ job:J1 hash state = pending (was dead)",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 0",
        ]
    );
    assert_eq!(scene.claim().await.lease.token(), 3, "the token goes on");
}

#[tokio::test]
async fn what_is_not_dead_stays_as_it_is() {
    let mut scene = scene("revive").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue().await;
    assert_eq!(scene.unchanged(queue.revive(id)).await.unwrap(), Revived::NotDead, "pending");
    let lease = scene.claim().await.lease;
    assert_eq!(scene.unchanged(queue.revive(id)).await.unwrap(), Revived::NotDead, "active");
    queue.snooze(&lease, MINUTE).await.unwrap();
    assert_eq!(scene.unchanged(queue.revive(id)).await.unwrap(), Revived::NotDead, "scheduled");
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(scene.unchanged(queue.revive(unknown)).await.unwrap(), Revived::Gone);
}

#[tokio::test]
async fn a_second_revival_finds_nothing_dead() {
    let mut scene = scene("revive").await;
    let id = scene.dead().await;
    let queue = scene.queue.clone();
    assert_eq!(queue.revive(id).await.unwrap(), Revived::Revived);
    assert_eq!(scene.unchanged(queue.revive(id)).await.unwrap(), Revived::NotDead);
}

#[tokio::test]
async fn a_key_that_another_job_took_meanwhile_stays_with_that() {
    let mut scene = scene("revive").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "broken").await.unwrap();
    let other = scene.enqueue_as(Draft::of(Work { n: 1 }).unique("k")).await;
    assert_eq!(scene.queue.revive(id).await.unwrap(), Revived::Revived);
    let ticket = scene.queue.enqueue(Work { n: 2 }).unique("k").await.unwrap();
    assert_eq!(ticket.admission(), Admission::Duplicate(other));
}
