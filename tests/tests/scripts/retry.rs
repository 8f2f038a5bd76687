use emq::Settled;

use crate::scene::{MINUTE, assert_after, scene};

#[tokio::test]
async fn counts_the_failure_and_schedules_the_job() {
    let mut scene = scene("retry").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (settled, changes) = scene.changes(queue.retry(&lease, MINUTE, "451 busy")).await;
    let after = scene.now().await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "+ job:J1 hash failures = 1",
            "+ job:J1 hash last_error = 451 busy",
            "+ job:J1 hash settled = retry 1",
            "~ job:J1 hash state = scheduled (was active)",
            "- job:J1 hash worker = W",
            "+ schedule zset J1 @ T",
        ]
    );
    assert_after(scene.score("schedule", lease.id()).await, MINUTE, before, after);
}

#[tokio::test]
async fn wakes_the_worker_that_would_sleep_past_it() {
    let mut scene = scene("retry").await;
    let first = scene.claimed().await;
    let second = scene.claimed().await;
    scene.command("DEL @marker").await;
    scene.queue.retry(&first, MINUTE, "no").await.unwrap();
    assert_eq!(scene.command("DEL @marker").await.int(), 1, "there was none that is due earlier");
    scene.queue.retry(&second, MINUTE * 2, "no").await.unwrap();
    assert_eq!(scene.command("EXISTS @marker").await.int(), 0);
}

#[tokio::test]
async fn failures_add_up_over_the_runs() {
    let mut scene = scene("retry").await;
    let mut lease = scene.claimed().await;
    for failures in 1..=3 {
        scene.queue.retry(&lease, MINUTE, "no").await.unwrap();
        scene.make_due(lease.id()).await;
        scene.queue.promote().await.unwrap();
        let job = scene.claim().await;
        assert_eq!((job.failures, job.lease.token()), (failures, u64::from(failures) + 1));
        lease = job.lease;
    }
}
