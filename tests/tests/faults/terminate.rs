use std::time::{Duration, Instant};

use emq::JobState;

use crate::office::{Chore, Office};

#[tokio::test]
async fn a_worker_that_is_told_to_end_finishes_what_it_has_in_hand() {
    let office = Office::open("term").await;
    let mut worker = office.worker().await;
    let id = office.enqueue(Chore::Takes(1_500)).await;
    worker.wait_line("begins").await;
    worker.terminate();
    worker.wait_line("is told to end").await;
    let late = office.enqueue(Chore::Quick).await;
    worker.wait_line(&format!("ends {id} 1")).await;
    worker.wait_line("completed 1").await;
    assert!(worker.wait().await.is_success());
    assert_eq!(office.queue.state(id).await.unwrap(), Some(JobState::Finished));
    assert_eq!(office.queue.state(late).await.unwrap(), Some(JobState::Pending), "it took nothing any more");
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_gives_back_what_it_cant_finish() {
    let office = Office::open("grace").await;
    let mut worker = office.worker_with(&[("EMQ_TEST_GRACE", "100"), ("EMQ_TEST_LEASE", "60000")]).await;
    let id = office.enqueue(Chore::HangsAtFirst).await;
    worker.wait_line("begins").await;
    worker.terminate();
    worker.wait_line("completed 0").await;
    assert!(worker.wait().await.is_success());
    let job = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.failures, job.stalled), (JobState::Pending, 0, 0));
    let mut next = office.worker().await;
    next.wait_line(&format!("ends {id} 2")).await;
}

#[tokio::test]
async fn an_idle_worker_ends_soon_after_it_is_told() {
    let office = Office::open("idle").await;
    let mut worker = office.worker().await;
    let id = office.enqueue(Chore::Quick).await;
    worker.wait_line(&format!("ends {id} 1")).await;
    office.completed(1).await;
    let told = Instant::now();
    worker.terminate();
    worker.wait_line("completed 1").await;
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert!(worker.wait().await.is_success());
}
