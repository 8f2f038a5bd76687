use emq::JobState;

use crate::office::{Chore, Office};

#[tokio::test]
async fn a_job_under_which_workers_die_is_buried_at_the_third_stall_and_its_neighbours_are_done() {
    let office = Office::open("loop").await;
    let id = office.enqueue(Chore::Aborts).await;
    for run in 1..=3 {
        let mut worker = office.worker().await;
        worker.wait_line(&format!("begins {id} {run}")).await;
        let ended = worker.wait().await;
        assert!(!ended.is_success(), "{ended:?}");
        office.enqueue(Chore::Quick).await;
    }
    let survivor = office.worker().await;
    office.completed(3).await;
    office.until(async || office.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    let job = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.attempts, job.stalled, job.last_error.as_deref()), (3, 3, Some("stalled")));
    survivor.terminate();
    assert!(survivor.wait().await.is_success());
}

#[tokio::test]
async fn a_panic_that_aborts_is_the_death_of_its_worker_and_its_jobs_come_back() {
    let office = Office::open("abort").await;
    let mut worker = office.worker_with(&[("EMQ_TEST_ABORT", "yes")]).await;
    let neighbour = office.enqueue(Chore::HangsAtFirst).await;
    worker.wait_line(&format!("begins {neighbour} 1")).await;
    let id = office.enqueue(Chore::PanicsAtFirst).await;
    worker.wait_line(&format!("begins {id} 1")).await;
    let ended = worker.wait().await;
    assert!(!ended.is_success(), "{ended:?}");
    let next = office.worker().await;
    office.completed(2).await;
    next.terminate();
    assert!(next.wait().await.is_success());
}
