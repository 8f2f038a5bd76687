use std::time::Duration;

use emq::{Limits, Rate};

use crate::scene::{MINUTE, assert_after, scene};

async fn limits(scene: &mut crate::scene::Scene) -> Limits {
    let queue = scene.queue.clone();
    scene.unchanged(queue.limits()).await.unwrap()
}

#[tokio::test]
async fn what_was_set_is_read_back_and_what_was_taken_away_is_none() {
    let mut scene = scene("limits").await;
    let none = limits(&mut scene).await;
    assert_eq!((none.concurrency, none.rate, none.held_until), (None, None, None));
    let rate = Rate::per(50, Duration::from_secs(1)).burst(10);
    scene.queue.set_concurrency(7).await.unwrap();
    scene.queue.set_rate(rate).await.unwrap();
    // What is spent of it changes nothing of what is set.
    let lease = scene.claimed().await;
    let set = limits(&mut scene).await;
    assert_eq!((set.concurrency, set.rate, set.held_until), (Some(7), Some(rate), None));

    let before = scene.now().await;
    scene.queue.hold(&lease, MINUTE).await.unwrap();
    let after = scene.now().await;
    let held = limits(&mut scene).await.held_until.unwrap();
    let held = held.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as f64;
    assert_after(held, MINUTE, before, after);

    scene.queue.resume().await.unwrap();
    scene.queue.set_concurrency(None).await.unwrap();
    scene.queue.set_rate(None).await.unwrap();
    assert_eq!(limits(&mut scene).await, none);
}

#[tokio::test]
async fn what_is_no_limit_is_none() {
    let mut scene = scene("limits").await;
    scene.command("HSET @meta concurrency many rate often held long").await;
    let read = limits(&mut scene).await;
    assert_eq!((read.concurrency, read.rate, read.held_until), (None, None, None));
}
