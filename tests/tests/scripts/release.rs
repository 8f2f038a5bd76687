use emq::{Draft, Settled};

use crate::scene::{Work, scene};

#[tokio::test]
async fn puts_the_job_back_and_counts_no_failure() {
    let mut scene = scene("release").await;
    let lease = scene.claimed().await;
    scene.command("DEL @marker").await;
    let queue = scene.queue.clone();
    let (settled, changes) = scene.changes(queue.release(&lease)).await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "+ job:J1 hash settled = release 1",
            "~ job:J1 hash state = pending (was active)",
            "- job:J1 hash worker = W",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 0",
        ]
    );
}

#[tokio::test]
async fn the_priority_is_kept() {
    let mut scene = scene("release").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).priority(9)).await;
    let lease = scene.claim().await.lease;
    scene.queue.release(&lease).await.unwrap();
    assert_eq!(scene.score("pending", id).await, 9.0);
}
