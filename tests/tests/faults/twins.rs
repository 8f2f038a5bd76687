use std::time::Duration;

use crate::office::{Chore, Office};

#[tokio::test]
async fn two_workers_of_one_name_dont_take_each_others_jobs() {
    let office = Office::open("twins").await;
    let mut twins = [office.worker().await, office.worker().await];
    let (mut count, mut begun) = (0, [false; 2]);
    // Until both are at work, and a while longer.
    while begun != [true; 2] || count < 60 {
        assert!(count < 3_000, "both work: {begun:?}");
        office.enqueue(Chore::Takes(30)).await;
        count += 1;
        for (twin, begun) in twins.iter_mut().zip(&mut begun) {
            *begun |= twin.lines().iter().any(|line| line.starts_with("begins"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    office.completed(count).await;
    let mut done = 0;
    for twin in &mut twins {
        twin.terminate();
        assert_eq!(twin.wait_line("lost").await, "0 stale 0");
        done += twin.wait_line("completed").await.parse::<u64>().unwrap();
    }
    assert_eq!(done, count);
}

#[tokio::test]
async fn a_worker_that_is_started_again_under_its_name_works_at_once() {
    let office = Office::open("again").await;
    let mut first = office.worker_with(&[("EMQ_TEST_LEASE", "60000")]).await;
    let held = office.enqueue(Chore::HangsAtFirst).await;
    first.wait_line(&format!("begins {held} 1")).await;
    first.kill().await;
    let mut second = office.worker_with(&[("EMQ_TEST_LEASE", "60000")]).await;
    let next = office.enqueue(Chore::Quick).await;
    second.wait_line(&format!("ends {next} 1")).await;
    office.completed(1).await;
    let job = office.queue.get(held).await.unwrap().unwrap();
    assert_eq!(job.attempts, 1, "the job of the one that was killed is left until its lease ends");
}
