use emq::{Draft, Reassigned};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn a_waiting_job_changes_its_lane_and_keeps_its_place_by_priority() {
    let mut scene = scene("reassign").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).group("a").priority(-5)).await;
    scene.command("DEL @marker @wake").await;
    let queue = scene.queue.clone();
    let b = queue.lane("b").unwrap();
    let (moved, changes) = scene.changes(queue.reassign(id, Some(&b))).await;
    assert_eq!(moved.unwrap(), Reassigned::Reassigned);
    assert_eq!(
        changes,
        [
            "- g:a:pending zset J1 @ -5",
            "+ g:b:pending zset J1 @ -5",
            "~ job:J1 hash group = b (was a)",
            "- lanes zset a @ 1",
            "+ lanes zset b @ 1",
            "+ marker zset 0 @ 0",
            "~ ring list [0] = b (was a)",
            "+ wake list [0] = 1",
        ]
    );
    assert_eq!(scene.unchanged(queue.reassign(id, Some(&b))).await.unwrap(), Reassigned::Reassigned);
    let (moved, changes) = scene.changes(queue.reassign(id, None)).await;
    assert_eq!(moved.unwrap(), Reassigned::Reassigned);
    assert_eq!(
        changes,
        [
            "- g:b:pending zset J1 @ -5",
            "- job:J1 hash group = b",
            "- lanes zset b @ 1",
            "- meta hash in_lanes = 1",
            "+ pending zset J1 @ -5",
            "- ring list [0] = b",
        ]
    );
}

#[tokio::test]
async fn a_scheduled_and_a_dead_job_will_wait_in_their_new_lane() {
    let mut scene = scene("reassign").await;
    let b = scene.queue.lane("b").unwrap();
    let scheduled = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE).group("a")).await;
    let dead = scene.dead().await;
    for id in [scheduled, dead] {
        assert_eq!(scene.queue.reassign(id, Some(&b)).await.unwrap(), Reassigned::Reassigned);
    }
    assert_eq!(b.state().await.unwrap().waiting, 0);
    scene.make_due(scheduled).await;
    scene.queue.promote().await.unwrap();
    scene.queue.revive(dead).await.unwrap();
    assert_eq!(b.state().await.unwrap().waiting, 2);
}

#[tokio::test]
async fn a_job_that_a_worker_holds_and_one_that_is_gone_stay_what_they_are() {
    let mut scene = scene("reassign").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    let b = queue.lane("b").unwrap();
    assert_eq!(scene.unchanged(queue.reassign(lease.id(), Some(&b))).await.unwrap(), Reassigned::Active);
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(scene.unchanged(queue.reassign(unknown, Some(&b))).await.unwrap(), Reassigned::Gone);
}

#[tokio::test]
async fn a_job_that_is_in_that_lane_or_in_none_already_stays_as_it_is() {
    let mut scene = scene("reassign").await;
    let queue = scene.queue.clone();
    let b = queue.lane("b").unwrap();
    let flat = scene.enqueue().await;
    let in_lane = scene.enqueue_as(Draft::of(Work { n: 1 }).group("b")).await;
    scene.command("DEL @marker").await;
    assert_eq!(scene.unchanged(queue.reassign(flat, None)).await.unwrap(), Reassigned::Reassigned);
    assert_eq!(scene.unchanged(queue.reassign(in_lane, Some(&b))).await.unwrap(), Reassigned::Reassigned);
}
