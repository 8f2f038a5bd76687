use std::time::Duration;

use emq::Draft;
use emq::{Admission, Completion, JobState, Lease, Settled};

use crate::scene::{MINUTE, Work, assert_after, scene};

#[tokio::test]
async fn leaves_a_marker_and_a_count_of_a_job() {
    let mut scene = scene("complete").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (settled, changes) = scene.changes(queue.complete_for(&lease, Completion::empty(), MINUTE)).await;
    let after = scene.now().await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "+ done zset J1 @ T",
            "- job:J1 hash attempts = 1",
            "- job:J1 hash name = work",
            "- job:J1 hash payload = {\"n\":0}",
            "- job:J1 hash state = active",
            "- job:J1 hash worker = W",
            "+ metrics:completed hash count = 1",
        ]
    );
    assert_after(scene.score("done", lease.id()).await, MINUTE, before, after);
    assert_eq!(queue.state(lease.id()).await.unwrap(), Some(JobState::Finished));
}

#[tokio::test]
async fn keeps_the_result_for_the_retention_and_takes_logs_and_key_along() {
    let mut scene = scene("complete").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    let lease = scene.claim().await.lease;
    scene.command(&format!("HSET @job:{id} logged 1")).await;
    scene.command(&format!("RPUSH @job:{id}:logs one two")).await;
    let queue = scene.queue.clone();
    let (settled, changes) = scene.changes(queue.complete(&lease, Completion::of("done").unwrap())).await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    for change in [
        "- de:k string = J1",
        "- job:J1:logs list [0] = one",
        "- job:J1:logs list [1] = two",
        "+ job:J1:result (expires)",
        "+ job:J1:result string = \"done\"",
    ] {
        assert!(changes.contains(&change.into()), "{change}: {changes:?}");
    }
    assert_eq!(queue.get(id).await.unwrap().unwrap().result.unwrap(), "\"done\"".as_bytes());
}

#[tokio::test]
async fn a_lease_that_was_made_by_hand_ends_a_job_as_that_of_its_claim_does() {
    let plain = || Draft::of(Work { n: 0 });
    for draft in [plain, || Draft::of(Work { n: 0 }).unique("k"), || Draft::of(Work { n: 0 }).group("north")] {
        let mut all_changes = Vec::new();
        for by_hand in [false, true] {
            let mut scene = scene("complete").await;
            scene.enqueue_as(draft()).await;
            let claimed = scene.claim().await.lease;
            let lease = if by_hand { Lease::new(claimed.id(), claimed.token()) } else { claimed };
            let queue = scene.queue.clone();
            let (settled, changes) = scene.changes(queue.complete(&lease, Completion::empty())).await;
            assert_eq!(settled.unwrap(), Settled::Accepted);
            assert_eq!(scene.command("EXISTS @de:k @slots @gactive @active").await.int(), 0);
            all_changes.push(changes);
        }
        assert_eq!(all_changes[0], all_changes[1]);
    }
}

#[tokio::test]
async fn a_key_that_another_job_holds_by_now_stays() {
    let mut scene = scene("complete").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    let lease = scene.claim().await.lease;
    let other = scene.enqueue().await;
    scene.command(&format!("SET @de:k {other}")).await;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    assert_eq!(scene.command("GET @de:k").await.text(), other.as_str());
    assert_ne!(id, other);
}

#[tokio::test]
async fn a_job_is_remembered_for_a_minute_at_least_so_that_no_stale_token_settles_the_next_of_its_id() {
    let mut scene = scene("complete").await;
    let lease = scene.claimed().await;
    let result = Completion::of("done").unwrap();
    scene.queue.complete_for(&lease, result, Duration::ZERO).await.unwrap();
    let left = scene.command(&format!("PTTL @job:{}:result", lease.id())).await.int();
    assert!((50_000..=60_000).contains(&left), "{left}");
    let now = scene.now().await;
    let forgotten = scene.score("done", lease.id()).await - now;
    assert!((50_000.0..=60_001.0).contains(&forgotten), "{forgotten}");
    let again = scene.queue.enqueue(Work { n: 0 }).id(lease.id()).await.unwrap();
    assert_eq!(again.admission(), Admission::Duplicate(lease.id()));
}

#[tokio::test]
async fn a_job_that_was_reaped_and_waits_can_still_be_completed_by_its_holder() {
    let mut scene = scene("complete").await;
    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    scene.queue.reap(None).await.unwrap();
    let queue = scene.queue.clone();
    let (settled, changes) = scene.changes(queue.complete(&lease, Completion::empty())).await;
    assert_eq!(settled.unwrap(), Settled::Accepted);
    assert!(changes.contains(&"- pending zset J1 @ 0".into()), "{changes:?}");
    assert_eq!(queue.counts().await.unwrap().unfinished(), 0);
}

#[tokio::test]
async fn the_call_that_comes_again_is_told_so_and_another_workers_is_not() {
    let mut scene = scene("complete").await;
    let lost = scene.claimed().await;
    scene.expire(lost.id()).await;
    scene.queue.reap(None).await.unwrap();
    let lease = scene.claim().await.lease;
    assert_eq!(lease.token(), 2);
    let queue = scene.queue.clone();
    assert_eq!(queue.complete(&lease, Completion::empty()).await.unwrap(), Settled::Accepted);
    let again = scene.unchanged(queue.complete(&lease, Completion::empty())).await.unwrap();
    assert_eq!(again, Settled::Repeated);
    let late = scene.unchanged(queue.complete(&lost, Completion::empty())).await.unwrap();
    assert_eq!(late, Settled::Stale, "its holder had lost the job, and another completed it");
}

#[tokio::test]
async fn tells_the_listeners() {
    let mut scene = scene("complete").await;
    let lease = scene.claimed().await;
    let mut listener = support::Raw::connect(support::server().await).await;
    listener.line(&format!("SUBSCRIBE emq:{{{}}}:events", scene.queue.name())).await;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    let message = listener.receive().await.unwrap();
    let event: serde_json::Value = serde_json::from_str(message.items()[2].text()).unwrap();
    assert_eq!(event, serde_json::json!({ "event": "completed", "job": lease.id() }));
}

#[tokio::test]
async fn a_waiting_place_of_another_type_stops_no_job_that_is_active() {
    let mut scene = scene("complete").await;
    let reaped = scene.claimed().await;
    scene.expire(reaped.id()).await;
    scene.queue.reap(None).await.unwrap();
    scene.command("DEL @pending").await;
    scene.enqueue().await;
    let active = scene.claim().await.lease;
    scene.command("SET @pending text").await;
    let queue = scene.queue.clone();
    assert!(scene.unchanged(queue.complete(&reaped, Completion::empty())).await.is_err());
    assert_eq!(queue.complete(&active, Completion::empty()).await.unwrap(), Settled::Accepted);
}
