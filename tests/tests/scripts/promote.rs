use std::time::Duration;

use emq::Draft;

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn moves_what_is_due_and_leaves_the_rest() {
    let mut scene = scene("promote").await;
    let due = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE).priority(4)).await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).delay(MINUTE)).await;
    scene.command("DEL @marker").await;
    scene.make_due(due).await;
    let queue = scene.queue.clone();
    let (promoted, changes) = scene.changes(queue.promote()).await;
    let promoted = promoted.unwrap();
    assert_eq!((promoted.count, promoted.dropped), (1, 0));
    assert!(promoted.next_due.unwrap() <= MINUTE && promoted.next_due.unwrap() > MINUTE / 2);
    assert_eq!(
        changes,
        [
            "~ job:J1 hash state = pending (was scheduled)",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 4",
            "- schedule zset J1 @ 1",
        ]
    );
}

#[tokio::test]
async fn nothing_due_changes_nothing() {
    let mut scene = scene("promote").await;
    let queue = scene.queue.clone();
    let promoted = scene.unchanged(queue.promote()).await.unwrap();
    assert_eq!((promoted.count, promoted.next_due), (0, None));
    scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    let promoted = scene.unchanged(queue.promote()).await.unwrap();
    assert_eq!(promoted.count, 0);
    assert!(promoted.next_due.unwrap() > Duration::ZERO);
}

#[tokio::test]
async fn says_when_the_first_of_what_waits_for_its_time_is_due() {
    let mut scene = scene("promote").await;
    let queue = scene.queue.clone();
    scene.enqueue_as(Draft::of(Work { n: 0 }).delay(2 * MINUTE)).await;
    let lane = queue.lane("a").unwrap();
    scene.enqueue_as(Draft::of(Work { n: 1 }).group("a")).await;
    let lease = scene.claim().await.lease;
    queue.hold(&lease, MINUTE).await.unwrap();
    let next = queue.promote().await.unwrap().next_due.unwrap();
    assert!(next <= MINUTE, "the lane that is held back: {next:?}");
    lane.resume().await.unwrap();
    scene.enqueue_as(Draft::of(Work { n: 2 }).delay(3 * MINUTE)).await;
    let next = queue.promote().await.unwrap().next_due.unwrap();
    assert!(MINUTE < next && next <= 2 * MINUTE, "the first job: {next:?}");
}
