use emq::{Draft, Settled};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn of_a_paused_queue_nothing_is_claimed_until_it_goes_on() {
    let mut scene = scene("pause").await;
    let lease = scene.claimed().await;
    scene.enqueue().await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).group("a")).await;
    let queue = scene.queue.clone();
    let (paused, changes) = scene.changes(queue.pause()).await;
    paused.unwrap();
    assert_eq!(changes, ["+ meta hash paused = 1"]);
    scene.unchanged(queue.pause()).await.unwrap();

    let mut claimer = scene.claimer();
    let batch = scene.unchanged(claimer.claim(10)).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (0, false));
    assert!(queue.counts().await.unwrap().paused);
    // What had been claimed goes on, and so does everything else.
    assert_eq!(queue.retry(&lease, MINUTE, "no").await.unwrap(), Settled::Accepted);
    scene.make_due(lease.id()).await;
    assert_eq!(queue.promote().await.unwrap().count, 1);
    assert!(claimer.claim(10).await.unwrap().jobs.is_empty());

    queue.resume().await.unwrap();
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 3);
}

#[tokio::test]
async fn a_paused_lane_leaves_the_ring_and_the_others_stay() {
    let mut scene = scene("pause").await;
    for lane in ["a", "b", "c"] {
        scene.enqueue_as(Draft::of(Work { n: 0 }).group(lane)).await;
    }
    let lane = scene.queue.lane("b").unwrap();
    let (paused, changes) = scene.changes(lane.pause()).await;
    paused.unwrap();
    assert_eq!(changes, ["+ paused set b", "~ ring list [1] = c (was b)", "- ring list [2] = c"]);
    scene.unchanged(lane.pause()).await.unwrap();
    let jobs = scene.claimer().claim(10).await.unwrap().jobs;
    assert_eq!(jobs.iter().filter_map(|job| job.group.as_deref()).collect::<Vec<_>>(), ["a", "c"]);
}
