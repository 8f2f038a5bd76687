use emq::Draft;

use crate::scene::{Work, scene};

#[tokio::test]
async fn a_job_whose_lease_ran_out_waits_again() {
    let mut scene = scene("reap").await;
    let lease = scene.claimed().await;
    let held = scene.claimed().await;
    scene.command("DEL @marker").await;
    scene.expire(lease.id()).await;
    let queue = scene.queue.clone();
    let (reaped, changes) = scene.changes(queue.reap(Some(3))).await;
    let reaped = reaped.unwrap();
    assert_eq!((reaped.recovered, reaped.dead, reaped.more, reaped.dropped), (vec![lease.id()], vec![], false, 0));
    assert_eq!(
        changes,
        [
            "- active zset J1 @ 1",
            "+ job:J1 hash reaped = 1",
            "+ job:J1 hash stalled = 1",
            "~ job:J1 hash state = pending (was active)",
            "- job:J1 hash worker = W",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 0",
        ]
    );
    assert!(scene.score("active", held.id()).await > 1.0);
}

#[tokio::test]
async fn at_the_last_stall_it_is_a_dead_letter() {
    let mut scene = scene("reap").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    for stall in 1..=2 {
        scene.claim().await;
        scene.expire(id).await;
        assert_eq!(scene.queue.reap(Some(3)).await.unwrap().recovered, [id], "stall {stall}");
    }
    scene.claim().await;
    scene.expire(id).await;
    let queue = scene.queue.clone();
    let (reaped, changes) = scene.changes(queue.reap(Some(3))).await;
    assert_eq!(reaped.unwrap().dead, [id]);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ 1",
            "- de:k string = J1",
            "+ dead zset J1 @ T",
            "+ job:J1 hash last_error = stalled",
            "~ job:J1 hash stalled = 3 (was 2)",
            "~ job:J1 hash state = dead (was active)",
            "- job:J1 hash worker = W",
            "+ metrics:failed hash count = 1",
        ]
    );
}

#[tokio::test]
async fn without_a_limit_it_always_recovers() {
    let mut scene = scene("reap").await;
    let id = scene.enqueue().await;
    for stall in 1..=20_u32 {
        assert_eq!(scene.claim().await.stalled, stall - 1);
        scene.expire(id).await;
        assert_eq!(scene.queue.reap(None).await.unwrap().recovered, [id]);
    }
}

#[tokio::test]
async fn overlapping_sweeps_reclaim_a_job_once() {
    let mut scene = scene("reap").await;
    for _ in 0..50 {
        let lease = scene.claimed().await;
        scene.expire(lease.id()).await;
    }
    let sweeps = (0..8).map(|_| {
        let queue = scene.queue.clone();
        tokio::spawn(async move { queue.reap(Some(1_000)).await.unwrap().recovered.len() })
    });
    let mut recovered = 0;
    for sweep in sweeps.collect::<Vec<_>>() {
        recovered += sweep.await.unwrap();
    }
    assert_eq!(recovered, 50);
    assert_eq!(scene.command("ZCARD @pending").await.int(), 50);
}

#[tokio::test]
async fn nothing_to_reap_changes_nothing() {
    let mut scene = scene("reap").await;
    scene.claimed().await;
    let queue = scene.queue.clone();
    let reaped = scene.unchanged(queue.reap(Some(1))).await.unwrap();
    assert!(reaped.recovered.is_empty() && reaped.dead.is_empty());
}

#[tokio::test]
async fn tells_the_listeners() {
    let mut scene = scene("reap").await;
    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    let mut listener = support::Raw::connect(support::server().await).await;
    listener.line(&format!("SUBSCRIBE emq:{{{}}}:events", scene.queue.name())).await;
    scene.queue.reap(None).await.unwrap();
    let message = listener.receive().await.unwrap();
    let event: serde_json::Value = serde_json::from_str(message.items()[2].text()).unwrap();
    assert_eq!(event, serde_json::json!({ "event": "stalled", "job": lease.id() }));
}
