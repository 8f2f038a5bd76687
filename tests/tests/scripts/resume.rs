use emq::Draft;

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn a_queue_that_goes_on_wakes_a_worker() {
    let mut scene = scene("resume").await;
    scene.enqueue().await;
    scene.queue.pause().await.unwrap();
    scene.command("DEL @marker").await;
    let queue = scene.queue.clone();
    let (resumed, changes) = scene.changes(queue.resume()).await;
    resumed.unwrap();
    assert_eq!(changes, ["+ marker zset 0 @ 0", "- meta hash paused = 1"]);
    scene.unchanged(queue.resume()).await.unwrap();
}

#[tokio::test]
async fn a_lane_that_goes_on_is_in_the_ring_once_and_wakes_a_worker() {
    let mut scene = scene("resume").await;
    scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    let lane = scene.queue.lane("a").unwrap();
    lane.pause().await.unwrap();
    scene.command("DEL @marker @wake").await;
    let (resumed, changes) = scene.changes(lane.resume()).await;
    resumed.unwrap();
    assert_eq!(changes, ["+ marker zset 0 @ 0", "- paused set a", "+ ring list [0] = a", "+ wake list [0] = 1"]);
    scene.unchanged(lane.resume()).await.unwrap();
}

#[tokio::test]
async fn it_ends_a_hold_too() {
    let mut scene = scene("resume").await;
    let lane = scene.queue.lane("a").unwrap();
    for draft in [Draft::of(Work { n: 0 }), Draft::of(Work { n: 1 }).group("a")] {
        scene.enqueue_as(draft).await;
        let lease = scene.claim().await.lease;
        scene.queue.hold(&lease, MINUTE).await.unwrap();
        assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 0);
        scene.queue.resume().await.unwrap();
        lane.resume().await.unwrap();
        let job = scene.claim().await;
        scene.queue.complete(&job.lease, emq::Completion::empty()).await.unwrap();
    }
}

#[tokio::test]
async fn a_lane_that_was_lost_from_the_ring_is_put_back_by_it() {
    let mut scene = scene("resume").await;
    scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    scene.command("DEL @ring").await;
    assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 0);
    scene.queue.lane("a").unwrap().resume().await.unwrap();
    scene.claim().await;
}

#[tokio::test]
async fn a_lane_stays_paused_as_long_as_it_cant_be_seen_whether_it_is_held_back() {
    let mut scene = scene("resume").await;
    let lane = scene.queue.lane("a").unwrap();
    lane.pause().await.unwrap();
    scene.command("SET @held text").await;
    assert!(scene.unchanged(lane.resume()).await.is_err());
}
