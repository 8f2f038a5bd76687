use emq::{Completion, Draft, Place};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn pages_through_each_place_in_its_order() {
    let mut scene = scene("list").await;
    let queue = scene.queue.clone();
    let lease = scene.claimed().await;
    queue.complete(&lease, Completion::empty()).await.unwrap();
    let dead = scene.dead().await;
    let active = scene.claimed().await.id();
    let scheduled = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    let mut pending = Vec::new();
    for _ in 0..5 {
        pending.push(scene.enqueue().await);
    }
    let urgent = scene.enqueue_as(Draft::of(Work { n: 0 }).priority(-1)).await;
    pending.insert(0, urgent);

    let ids = async |place, offset, count| {
        let listed = queue.list(place, offset, count).await.unwrap();
        listed.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Place::Pending, 0, 100).await, pending);
    assert_eq!(ids(Place::Pending, 2, 2).await, pending[2..4]);
    assert_eq!(ids(Place::Pending, 6, 2).await, []);
    assert_eq!(ids(Place::Pending, u64::MAX, usize::MAX).await, []);
    assert_eq!(ids(Place::Active, 0, 9).await, [active]);
    assert_eq!(ids(Place::Scheduled, 0, 9).await, [scheduled]);
    assert_eq!(ids(Place::Dead, 0, 9).await, [dead]);
    assert_eq!(ids(Place::Finished, 0, 9).await, [lease.id()]);
    let first = queue.list(Place::Pending, 0, 1).await.unwrap()[0];
    assert_eq!(first.score, -1.0);
    // An id that isn't a job's can't be named.
    scene.command("ZADD @pending 0 leftover").await;
    assert_eq!(ids(Place::Pending, 0, 100).await, pending);
}
