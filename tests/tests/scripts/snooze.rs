use emq::Settled;

use crate::scene::{MINUTE, assert_after, scene};

#[tokio::test]
async fn schedules_the_job_and_counts_no_failure() {
    let mut scene = scene("snooze").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (settled, changes) = scene.changes(queue.snooze(&lease, MINUTE)).await;
    let after = scene.now().await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "+ job:J1 hash settled = snooze 1",
            "~ job:J1 hash state = scheduled (was active)",
            "- job:J1 hash worker = W",
            "+ schedule zset J1 @ T",
        ]
    );
    assert_after(scene.score("schedule", lease.id()).await, MINUTE, before, after);
}
