use std::time::Duration;

use emq::{JobId, JobState};
use support::Child;
use tokio::time::{Instant, sleep_until};

use crate::office::{Chore, End, LEASE, Office};

/// How long a chore takes that is to be under way when its worker is frozen, in ms, also on a machine that is busy with other
/// things.
const LONG: u64 = 3_000;

#[tokio::test]
async fn a_worker_that_is_frozen_past_its_lease_writes_nothing_when_it_thaws() {
    let office = Office::open("freeze").await;
    let mut first = office.worker().await;
    let id = office.enqueue(Chore::Takes(LONG)).await;
    first.wait_line(&format!("begins {id} 1")).await;
    first.freeze();
    // It keeps the job, however little time the machine has for it.
    let mut second = office.worker_with(&[("EMQ_TEST_LEASE", "20000")]).await;
    second.wait_line(&format!("begins {id} 2")).await;
    let held = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!((held.state, held.attempts, held.stalled), (JobState::Active, 2, 1));
    first.thaw();
    // Whether it learns of the loss first, or is done first: it goes on, and the job is the other's.
    let next = office.enqueue(Chore::Quick).await;
    second.wait_line(&format!("ends {id} 2")).await;
    office.completed(2).await;
    assert!(office.queue.state(next).await.unwrap() == Some(JobState::Finished));
    first.terminate();
    let refused = first.wait_line("lost").await;
    assert!(["1 stale 0", "0 stale 1"].contains(&refused.as_str()), "lost {refused}");
    second.terminate();
    assert_eq!(second.wait_line("lost").await, "0 stale 0");
    assert_eq!(office.queue.counts().await.unwrap().completed, 2);
}

/// Has another holder, who takes his time, hold the job of a worker that is frozen.
async fn taken_over(office: &Office, worker: &Child, id: JobId) -> emq::Lease {
    worker.freeze();
    office.until(async || !office.queue.reap(Some(3)).await.unwrap().recovered.is_empty()).await;
    let mut claimer = office.queue.claimer("other");
    let held = claimer.claim(1).await.unwrap().jobs.pop().unwrap();
    assert_eq!((held.lease.id(), held.lease.token()), (id, 2));
    held.lease
}

/// Runs a chore in a worker that is frozen until it is over and another holder has the job, and thaws it then.
async fn is_too_late(chore: Chore) {
    let office = Office::open("late").await;
    let mut worker = office.worker().await;
    let id = office.enqueue(chore).await;
    worker.wait_line(&format!("begins {id} 1")).await;
    let over = Instant::now() + Duration::from_millis(LONG);
    let held = taken_over(&office, &worker, id).await;
    let before = office.queue.get(id).await.unwrap().unwrap();
    // Whether it learns of the loss first, or is done first, is left to chance.
    sleep_until(over).await;
    worker.thaw();
    worker.terminate();
    let refused = worker.wait_line("lost").await;
    assert!(["1 stale 0", "0 stale 1"].contains(&refused.as_str()), "{chore:?}: lost {refused}");
    let after = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!(format!("{before:?}"), format!("{after:?}"), "{chore:?}");
    assert!(office.queue.complete(&held, emq::Completion::empty()).await.unwrap().is_settled());
}

#[tokio::test]
async fn a_completion_that_comes_too_late_is_refused_and_the_row_of_the_new_holder_untouched() {
    is_too_late(Chore::Takes(LONG)).await;
}

#[tokio::test]
async fn whatever_else_comes_too_late_is_refused_as_well() {
    let late = |end| is_too_late(Chore::EndsAfter(LONG, end));
    tokio::join!(late(End::Fails), late(End::FailsForGood), late(End::Snoozes), late(End::Discards));
}

#[tokio::test]
async fn what_a_run_tells_of_itself_too_late_is_refused_and_changes_nothing() {
    let office = Office::open("tells").await;
    let mut worker = office.worker().await;
    let id = office.enqueue(Chore::Reports).await;
    worker.wait_line(&format!("reports {id} 1")).await;
    let held = taken_over(&office, &worker, id).await;
    let before = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!(before.progress.as_deref(), Some("1"), "the first run's");
    worker.thaw();
    assert_eq!(worker.wait_line(&format!("refused {id} 1 and its line")).await, "true");
    let after = office.queue.get(id).await.unwrap().unwrap();
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    assert_eq!(office.queue.logs(id).await.unwrap(), Vec::<String>::new());
    assert!(office.queue.complete(&held, emq::Completion::empty()).await.unwrap().is_settled());
    worker.terminate();
    assert!(worker.wait().await.is_success());
}

#[tokio::test]
async fn a_worker_that_was_frozen_for_less_than_its_lease_has_lost_nothing() {
    let office = Office::open("nap").await;
    let mut worker = office.worker_with(&[("EMQ_TEST_LEASE", "20000")]).await;
    let id = office.enqueue(Chore::Takes(500)).await;
    worker.wait_line(&format!("begins {id} 1")).await;
    worker.freeze();
    tokio::time::sleep(LEASE).await;
    worker.thaw();
    worker.wait_line(&format!("ends {id} 1")).await;
    office.completed(1).await;
    worker.terminate();
    assert_eq!(worker.wait_line("lost").await, "0 stale 0");
}
