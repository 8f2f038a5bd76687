use emq::{Admission, Draft, LaneDrained};

use crate::scene::{Scene, Work, scene};

#[tokio::test]
async fn what_waits_in_the_lane_goes_and_nothing_else() {
    let mut scene = scene("drain").await;
    let claimed = scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    let lease = scene.claim().await.lease;
    scene.queue.release(&lease).await.unwrap();
    let fresh = scene.enqueue_as(Draft::of(Work { n: 1 }).group("a").unique("k")).await;
    let held = scene.enqueue_as(Draft::of(Work { n: 2 }).group("a").priority(-1)).await;
    scene.claimer().claim(1).await.unwrap();
    let other = scene.enqueue_as(Draft::of(Work { n: 3 }).group("b")).await;
    let lane = scene.queue.lane("a").unwrap();

    let LaneDrained { removed, left, .. } = lane.drain().await.unwrap();
    assert_eq!((removed, left), (2, 0));
    let queue = scene.queue.clone();
    for (id, is_there) in [(claimed, false), (fresh, false), (held, true), (other, true)] {
        assert_eq!(scene.command(&format!("EXISTS @job:{id}")).await.int() == 1, is_there, "{id}");
    }
    assert_eq!(scene.command("EXISTS @de:k").await.int(), 0);
    assert_eq!(scene.command("LRANGE @ring 0 -1").await.items().len(), 1);
    assert_eq!(lane.state().await.unwrap().active, 1);
    // A token of it is still about.
    assert_eq!(queue.enqueue(Work { n: 9 }).id(claimed).await.unwrap().admission(), Admission::Duplicate(claimed));
    assert_eq!(queue.enqueue(Work { n: 9 }).id(fresh).await.unwrap().admission(), Admission::Enqueued);
    scene.unchanged(lane.drain()).await.unwrap();
}

#[tokio::test]
async fn it_goes_in_slices() {
    let server = support::Server::start().await;
    let scene = Scene::on(&server, "drain").await;
    let name = scene.queue.name().as_str().to_owned();
    let jobs = (0..2_500).map(|n| Draft::of(Work { n }).group("a").queue(name.as_str()));
    scene.client.enqueue_many(jobs).await.unwrap();
    let lane = scene.queue.lane("a").unwrap();
    let mut slices = Vec::new();
    loop {
        let drained = lane.drain().await.unwrap();
        slices.push((drained.removed, drained.left));
        if drained.left == 0 {
            break;
        }
    }
    assert_eq!(slices, [(1_000, 1_500), (1_000, 500), (500, 0)]);
    let counts = scene.queue.counts().await.unwrap();
    assert_eq!((counts.pending, counts.lanes), (0, 0));
}
