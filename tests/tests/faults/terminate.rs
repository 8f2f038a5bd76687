use std::time::{Duration, Instant};

use emq::JobState;
use support::{Child, Server};

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
    assert!(told.elapsed() < Duration::from_secs(10), "it doesn't wait for its grace time: {:?}", told.elapsed());
    assert!(worker.wait().await.is_success());
}

#[tokio::test]
async fn a_second_signal_of_any_kind_changes_nothing() {
    let office = Office::open("again").await;
    let signals: [fn(&Child); 2] = [Child::terminate, Child::interrupt];
    let mut workers = Vec::new();
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut worker = office.worker().await;
        let id = office.enqueue(Chore::Takes(1_000)).await;
        worker.wait_line(&format!("begins {id} 1")).await;
        signals[first](&worker);
        worker.wait_line("is told to end").await;
        signals[second](&worker);
        workers.push((worker, id));
    }
    for (mut worker, id) in workers {
        worker.wait_line(&format!("ends {id} 1")).await;
        worker.wait_line("completed 1").await;
        assert!(worker.wait().await.is_success());
        assert_eq!(office.queue.state(id).await.unwrap(), Some(JobState::Finished));
    }
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_while_it_cant_even_start_ends() {
    let server = Server::start().await;
    let office = Office::on(&server, "start").await;
    let signals: [fn(&Child); 2] = [Child::terminate, Child::interrupt];
    for signal in signals {
        let mut worker = office.worker_that_connects(&[("EMQ_TEST_HESITATE", "300")]).await;
        server.freeze();
        worker.wait_line("ready").await;
        // Its signals are listened for in the same breath as its connections are made.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let told = Instant::now();
        signal(&worker);
        worker.wait_line("completed 0").await;
        assert!(worker.wait().await.is_success());
        assert!(told.elapsed() < Duration::from_secs(30), "{:?}", told.elapsed());
        server.thaw();
    }
}
