use std::time::Duration;

use emq::{Draft, Settled};

use crate::scene::{Work, assert_after, scene};

#[tokio::test]
async fn makes_a_dead_letter_and_frees_its_key() {
    let mut scene = scene("bury").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    let lease = scene.claim().await.lease;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (settled, changes) = scene.changes(queue.bury(&lease, "no such student")).await;
    let after = scene.now().await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "- de:k string = J1",
            "+ dead zset J1 @ T",
            "+ job:J1 hash failures = 1",
            "+ job:J1 hash last_error = no such student",
            "+ job:J1 hash settled = bury 1",
            "~ job:J1 hash state = dead (was active)",
            "- job:J1 hash worker = W",
            "+ metrics:failed hash count = 1",
        ]
    );
    assert_after(scene.score("dead", id).await, Duration::ZERO, before, after);
}

#[tokio::test]
async fn tells_the_listeners() {
    let mut scene = scene("bury").await;
    let lease = scene.claimed().await;
    let mut listener = support::Raw::connect(support::server().await).await;
    listener.line(&format!("SUBSCRIBE emq:{{{}}}:events", scene.queue.name())).await;
    scene.queue.bury(&lease, "no").await.unwrap();
    let message = listener.receive().await.unwrap();
    let event: serde_json::Value = serde_json::from_str(message.items()[2].text()).unwrap();
    assert_eq!(event, serde_json::json!({ "event": "dead", "job": lease.id(), "reason": "no" }));
}
