use emq::{Completion, JobState};

use crate::scene::{MINUTE, scene};

#[tokio::test]
async fn names_every_state() {
    let mut scene = scene("state").await;
    let queue = scene.queue.clone();
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert_eq!(queue.state(unknown).await.unwrap(), None);
    let id = scene.enqueue().await;
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Pending));
    let lease = scene.claim().await.lease;
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Active));
    queue.snooze(&lease, MINUTE).await.unwrap();
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Scheduled));
    let dead = scene.dead().await;
    assert_eq!(queue.state(dead).await.unwrap(), Some(JobState::Dead));
    let lease = scene.claimed().await;
    queue.complete(&lease, Completion::empty()).await.unwrap();
    assert_eq!(queue.state(lease.id()).await.unwrap(), Some(JobState::Finished));
    // A held parent of EchoMQ, and a row without a state.
    scene.command(&format!("HSET @job:{unknown} state awaiting_children")).await;
    assert_eq!(queue.state(unknown).await.unwrap(), Some(JobState::Other));
    scene.command(&format!("HDEL @job:{id} state")).await;
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Other));
}
