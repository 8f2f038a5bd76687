use emq::{Completion, Draft, Settled};

use crate::scene::{MINUTE, Scene, Work, assert_after, scene};

#[tokio::test]
async fn the_job_goes_back_to_its_place_without_a_failure_and_its_lane_waits() {
    let mut scene = scene("hold").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).group("a")).await;
    scene.enqueue_as(Draft::of(Work { n: 2 }).group("b")).await;
    let lease = scene.claimer().claim(1).await.unwrap().jobs[0].lease;
    assert_eq!(lease.id(), id);
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (held, changes) = scene.changes(queue.hold(&lease, MINUTE)).await;
    let after = scene.now().await;
    assert_eq!(held.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "+ g:a:pending zset J1 @ 0",
            "- gactive hash a = 1",
            "+ gheld hash a = T",
            "+ held zset a @ T",
            "+ job:J1 hash settled = hold 1",
            "~ job:J1 hash state = pending (was active)",
            "- job:J1 hash worker = W",
            "~ lanes zset a @ 2 (was 1)",
            "~ meta hash in_lanes = 3 (was 2)",
            "- ring list [1] = a",
            "- slots hash J1 = a",
        ]
    );
    let score: f64 = scene.command("ZSCORE @held a").await.text().parse().unwrap();
    assert_after(score, MINUTE, before, after);
    assert_eq!(scene.unchanged(queue.hold(&lease, MINUTE)).await.unwrap(), Settled::Repeated);

    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.jobs[0].group.as_deref(), batch.more), (1, Some("b"), false));
    assert!(batch.next_event.unwrap() <= MINUTE);
    // It ends.
    scene.command("ZADD @held 1 a").await;
    scene.queue.promote().await.unwrap();
    let jobs = scene.claimer().claim(10).await.unwrap().jobs;
    assert_eq!((jobs.len(), jobs[0].lease.id(), jobs[0].failures), (2, id, 0));
}

#[tokio::test]
async fn a_job_without_a_lane_holds_back_the_queue() {
    let mut scene = scene("hold").await;
    let lease = scene.claimed().await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).group("a")).await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    assert_eq!(queue.hold(&lease, MINUTE).await.unwrap(), Settled::Accepted);
    let after = scene.now().await;
    let held: f64 = scene.command("HGET @meta held").await.text().parse().unwrap();
    assert_after(held, MINUTE, before, after);
    let mut claimer = scene.claimer();
    let batch = claimer.claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (0, false));
    assert!(batch.next_event.is_some_and(|wait| wait <= MINUTE), "{batch:?}");
    scene.command("HSET @meta held 1").await;
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 2);
}

#[tokio::test]
async fn of_two_holds_the_later_end_counts() {
    let mut scene = scene("hold").await;
    for lane in [None, Some("a")] {
        let mut leases = Vec::new();
        for n in 0..2 {
            let draft = Draft::of(Work { n });
            scene.enqueue_as(if let Some(lane) = lane { draft.group(lane) } else { draft }).await;
            leases.push(scene.claim().await.lease);
        }
        scene.queue.hold(&leases[0], 10 * MINUTE).await.unwrap();
        let long = held(&mut scene, lane).await;
        scene.queue.hold(&leases[1], MINUTE).await.unwrap();
        assert_eq!(held(&mut scene, lane).await, long);
        scene.queue.resume().await.unwrap();
        scene.command("ZREMRANGEBYRANK @pending 0 -1").await;
    }
}

async fn held(scene: &mut Scene, lane: Option<&str>) -> String {
    let words = if lane.is_some() { "ZSCORE @held a" } else { "HGET @meta held" };
    scene.command(words).await.text().to_owned()
}

#[tokio::test]
async fn it_is_refused_to_whom_the_job_isnt() {
    let mut scene = scene("hold").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    queue.release(&lease).await.unwrap();
    assert_eq!(scene.unchanged(queue.hold(&lease, MINUTE)).await.unwrap(), Settled::Stale);
    let lease = scene.claim().await.lease;
    queue.complete(&lease, Completion::empty()).await.unwrap();
    assert_eq!(scene.unchanged(queue.hold(&lease, MINUTE)).await.unwrap(), Settled::Gone);
}
