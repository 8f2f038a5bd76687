use std::time::Duration;

use emq::{Admission, Completion, Keep};

use crate::scene::{Work, assert_after, scene};

#[tokio::test]
async fn forgets_what_is_overdue_and_nothing_else() {
    let mut scene = scene("trim").await;
    let old = scene.claimed().await;
    let new = scene.claimed().await;
    for lease in [old, new] {
        scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    }
    scene.command(&format!("ZADD @done 1 {}", old.id())).await;
    let queue = scene.queue.clone();
    let (trimmed, changes) = scene.changes(queue.trim(Keep::default())).await;
    let trimmed = trimmed.unwrap();
    assert_eq!((trimmed.forgotten, trimmed.dead, trimmed.more), (1, 0, false));
    assert_eq!(changes, ["- done zset J1 @ 1"]);
    let again = queue.enqueue(Work { n: 0 }).id(old.id()).await.unwrap();
    assert_eq!(again.admission(), Admission::Enqueued);
}

#[tokio::test]
async fn deletes_dead_letters_beyond_their_age() {
    let mut scene = scene("trim").await;
    let old = scene.dead().await;
    scene.dead().await;
    scene.command(&format!("RPUSH @job:{old}:logs one")).await;
    scene.command(&format!("SET @job:{old}:result half")).await;
    scene.command(&format!("ZADD @dead 1000 {old}")).await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (trimmed, changes) = scene.changes(queue.trim(Keep::default())).await;
    let after = scene.now().await;
    assert_eq!(trimmed.unwrap().dead, 1);
    assert_eq!(
        changes,
        [
            "- dead zset J1 @ 1000",
            "+ done zset J1 @ T",
            "- job:J1 hash attempts = 1",
            "- job:J1 hash failures = 1",
            "- job:J1 hash last_error = broken",
            "- job:J1 hash name = work",
            "- job:J1 hash payload = {\"n\":0}",
            "- job:J1 hash settled = bury 1",
            "- job:J1 hash state = dead",
            "- job:J1:logs list [0] = one",
            "- job:J1:result string = half",
        ]
    );
    assert_after(scene.score("done", old).await, emq::DEFAULT_RETENTION, before, after);
}

#[tokio::test]
async fn leaves_a_job_alone_whose_id_a_lost_dead_letter_had() {
    let mut scene = scene("trim").await;
    let id = scene.dead().await;
    scene.command(&format!("DEL @job:{id}")).await;
    scene.command(&format!("ZADD @dead 1000 {id}")).await;
    scene.queue.enqueue(Work { n: 0 }).id(id).await.unwrap();
    let queue = scene.queue.clone();
    let (trimmed, changes) = scene.changes(queue.trim(Keep::default())).await;
    assert_eq!(trimmed.unwrap().dead, 1);
    assert_eq!(changes, ["- dead zset J1 @ 1000"]);
    assert_eq!(scene.claim().await.lease.id(), id);
}

#[tokio::test]
async fn deletes_the_oldest_dead_letters_beyond_their_number() {
    let mut scene = scene("trim").await;
    let mut dead = Vec::new();
    for age in 0..5 {
        let id = scene.dead().await;
        scene.command(&format!("ZADD @dead INCR {age} {id}")).await;
        dead.push(id);
    }
    let keep = Keep { count: 2, ..Keep::default() };
    let trimmed = scene.queue.trim(keep).await.unwrap();
    assert_eq!((trimmed.dead, trimmed.more), (3, true), "the age wasn't looked at yet");
    let left = scene.queue.list(emq::Place::Dead, 0, 10).await.unwrap();
    assert_eq!(left.iter().map(|letter| letter.id).collect::<Vec<_>>(), dead[3..]);
    let trimmed = scene.queue.trim(keep).await.unwrap();
    assert_eq!((trimmed.dead, trimmed.more), (0, false));
}

#[tokio::test]
async fn a_dead_letter_without_a_time_of_death_goes_by_number_alone() {
    let mut scene = scene("trim").await;
    let id = scene.dead().await;
    // As EchoMQ writes it.
    scene.command(&format!("ZADD @dead 0 {id}")).await;
    let queue = scene.queue.clone();
    assert_eq!(scene.unchanged(queue.trim(Keep::default())).await.unwrap().dead, 0);
    let keep = Keep { count: 0, ..Keep::default() };
    assert_eq!(queue.trim(keep).await.unwrap().dead, 1);
}

#[tokio::test]
async fn forgets_the_claims_of_workers_that_are_long_silent() {
    let mut scene = scene("trim").await;
    scene.claimed().await;
    let hour_ago = scene.now().await - 3_600_001.0;
    scene.command(&format!("HSET @claims gone 7|{hour_ago}|JOB0JZGkP9AMvv:1 garbage x")).await;
    let queue = scene.queue.clone();
    let (_, changes) = scene.changes(queue.trim(Keep::default())).await;
    assert_eq!(changes, ["- claims hash garbage = x", "- claims hash gone = 7|T|JOB0JZGkP9AMvv:1"]);
}

#[tokio::test]
async fn keeps_everything_of_any_age_if_told_to() {
    let mut scene = scene("trim").await;
    let id = scene.dead().await;
    scene.command(&format!("ZADD @dead 1000 {id}")).await;
    let queue = scene.queue.clone();
    let keep = Keep { age: Duration::MAX, count: u64::MAX };
    assert_eq!(scene.unchanged(queue.trim(keep)).await.unwrap().dead, 0);
}

#[tokio::test]
async fn tells_the_listeners_which_dead_letters_are_gone() {
    let mut scene = scene("trim").await;
    let old = scene.dead().await;
    scene.command(&format!("ZADD @dead 1000 {old}")).await;
    let mut listener = support::Raw::connect(support::server().await).await;
    listener.line(&format!("SUBSCRIBE emq:{{{}}}:events", scene.queue.name())).await;
    scene.queue.trim(Keep::default()).await.unwrap();
    let message = listener.receive().await.unwrap();
    let event: serde_json::Value = serde_json::from_str(message.items()[2].text()).unwrap();
    assert_eq!(event, serde_json::json!({ "event": "removed", "job": old }));
}

#[tokio::test]
async fn forgets_the_windows_that_are_over() {
    let mut scene = scene("trim").await;
    scene.queue.enqueue(Work { n: 0 }).unique(emq::Unique::key("k").after_end(Duration::from_secs(60))).await.unwrap();
    let lease = scene.claim().await.lease;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    let queue = scene.queue.clone();
    scene.unchanged(queue.trim(Keep::default())).await.unwrap();
    scene.command("ZADD @windows 1 k").await;
    queue.trim(Keep::default()).await.unwrap();
    assert_eq!(scene.command("EXISTS @windows").await.int(), 0);
}
