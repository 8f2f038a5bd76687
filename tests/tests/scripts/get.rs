use emq::{Completion, Draft, JobState};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn answers_everything_that_is_stored() {
    let mut scene = scene("get").await;
    let queue = scene.queue.clone();
    let draft = Draft::of(Work { n: 7 }).unique("k").priority(-2).max_attempts(5).header("tenant", "north");
    let id = scene.enqueue_as(draft).await;
    let lease = scene.claim().await.lease;
    let job = scene.unchanged(queue.get(id)).await.unwrap().unwrap();
    assert_eq!((job.id, job.state, job.attempts), (id, JobState::Active, 1));
    assert!(job.worker.unwrap().starts_with("w."));
    assert_eq!(job.payload, "{\"n\":7}".as_bytes());
    assert_eq!((job.name.as_deref(), job.priority, job.max_attempts), (Some("work"), -2, Some(5)));
    assert_eq!(job.deduplication_key.as_deref(), Some("k"));
    assert_eq!(job.headers["tenant"], "north");

    queue.retry(&lease, MINUTE, "no\r\n\0way").await.unwrap();
    let job = queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.failures, job.worker), (JobState::Scheduled, 1, None));
    assert_eq!(job.last_error.as_deref(), Some("no\r\n\0way"));
}

#[tokio::test]
async fn of_a_finished_job_the_result_is_left() {
    let mut scene = scene("get").await;
    let queue = scene.queue.clone();
    let lease = scene.claimed().await;
    queue.complete(&lease, Completion::of(&[1, 2]).unwrap()).await.unwrap();
    let job = queue.get(lease.id()).await.unwrap().unwrap();
    assert_eq!((job.state, job.result.unwrap()), (JobState::Finished, "[1,2]".into()));
    assert!(job.payload.is_empty());
    let unknown = "JOB0JZGkP9AMvv".parse().unwrap();
    assert!(queue.get(unknown).await.unwrap().is_none());
}
