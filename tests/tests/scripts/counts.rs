use emq::{Completion, Counts, Draft};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn counts_each_place() {
    let mut scene = scene("counts").await;
    let queue = scene.queue.clone();
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
    let lease = scene.claimed().await;
    queue.complete(&lease, Completion::empty()).await.unwrap();
    scene.dead().await;
    scene.claimed().await;
    for n in 0..2 {
        scene.enqueue_as(Draft::of(Work { n }).delay(MINUTE)).await;
    }
    for _ in 0..3 {
        scene.enqueue().await;
    }
    scene.command("HSET @meta paused 1").await;
    let counts = scene.unchanged(queue.counts()).await.unwrap();
    assert_eq!((counts.pending, counts.active, counts.scheduled, counts.dead), (3, 1, 2, 1));
    assert_eq!((counts.remembered, counts.completed, counts.failed, counts.paused), (1, 1, 1, true));
    assert_eq!(counts.unfinished(), 6);
}
