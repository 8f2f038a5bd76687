use std::time::{Duration, Instant};

use crate::office::{BEAT, Chore, LEASE, Office};

#[tokio::test]
async fn a_job_whose_worker_is_killed_is_recovered_within_lease_and_beat_and_runs_once_more() {
    let office = Office::open("kill").await;
    let mut first = office.worker().await;
    let id = office.enqueue(Chore::HangsAtFirst).await;
    first.wait_line(&format!("begins {id} 1")).await;
    let mut second = office.worker().await;
    first.kill().await;
    let killed = Instant::now();
    second.wait_line(&format!("begins {id} 2")).await;
    // What a machine may add that is busy with other things. If it weren't for its lease, the job would never come back.
    let slack = Duration::from_secs(20);
    assert!(killed.elapsed() < LEASE + BEAT + slack, "{:?}", killed.elapsed());
    office.completed(1).await;
    second.terminate();
    second.wait_line("completed 1").await;
    assert!(!second.lines().iter().any(|line| line.starts_with("begins")), "it ran once more, and no more");
}

#[tokio::test]
async fn no_job_is_lost_while_workers_are_killed_and_started_again() {
    let office = Office::open("massacre").await;
    let count = 150;
    for _ in 0..count {
        office.enqueue(Chore::Takes(20)).await;
    }
    for _ in 0..4 {
        let before = office.queue.counts().await.unwrap().completed;
        let worker = office.worker().await;
        office.until(async || office.queue.counts().await.unwrap().completed > before + 5).await;
        worker.kill().await;
    }
    let last = office.worker().await;
    office.completed(count).await;
    let counts = office.queue.counts().await.unwrap();
    assert_eq!((counts.unfinished(), counts.dead, counts.completed), (0, 0, count));
    last.terminate();
    assert!(last.wait().await.is_success());
}

#[tokio::test]
async fn limits_hold_while_workers_are_killed_and_every_slot_comes_free() {
    let office = Office::open("limits").await;
    office.queue.set_concurrency(5).await.unwrap();
    let lanes = [("a", 1), ("b", 2), ("c", 4)];
    for (lane, limit) in lanes {
        office.queue.lane(lane).unwrap().set_concurrency(limit).await.unwrap();
    }
    let count = 120;
    for n in 0..count {
        office.enqueue_into(lanes[n % 3].0, Chore::Takes(10)).await;
    }
    let within = async || {
        let counts = office.queue.counts().await.unwrap();
        assert!(counts.active <= 5, "{} are active", counts.active);
        for (lane, limit) in lanes {
            let state = office.queue.lane(lane).unwrap().state().await.unwrap();
            assert!(state.active <= u64::from(limit), "{} of {lane} are active", state.active);
        }
        counts.completed
    };
    for _ in 0..4 {
        let before = within().await;
        let workers = [office.worker().await, office.worker().await];
        office.until(async || within().await > before + 8).await;
        for worker in workers {
            worker.kill().await;
        }
    }
    let last = office.worker().await;
    office.until(async || within().await >= count as u64).await;
    for (lane, _) in lanes {
        assert_eq!(office.queue.lane(lane).unwrap().state().await.unwrap().active, 0);
    }
    let counts = office.queue.counts().await.unwrap();
    assert_eq!((counts.unfinished(), counts.dead, counts.lanes), (0, 0, 0));
    last.terminate();
    assert!(last.wait().await.is_success());
}
