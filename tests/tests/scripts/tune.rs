use std::time::Duration;

use emq::{Draft, Rate};

use crate::scene::{Work, scene};

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_setting_is_written_once_and_taken_away_whole() {
    let mut scene = scene("tune").await;
    let queue = scene.queue.clone();
    let lane = queue.lane("a").unwrap();
    scene.enqueue().await;
    let rate = Rate::per(2, HOUR).burst(3);
    let (set, changes) = scene
        .changes(async {
            for _ in 0..2 {
                queue.set_concurrency(7).await?;
                queue.set_rate(rate).await?;
                lane.set_concurrency(2).await?;
                lane.set_weight(5).await?;
                lane.set_rate(rate).await?;
            }
            Ok::<_, emq::CallError>(())
        })
        .await;
    set.unwrap();
    assert_eq!(
        changes,
        [
            "+ glimit hash a = 2",
            "+ grate hash a = 2 3600000 3",
            "+ gweight hash a = 5",
            "+ meta hash concurrency = 7",
            "+ meta hash rate = 2 3600000 3",
        ]
    );
    let state = lane.state().await.unwrap();
    assert_eq!((state.concurrency, state.weight, state.rate), (Some(2), 5, Some(rate)));
    queue.set_concurrency(None).await.unwrap();
    queue.set_rate(None).await.unwrap();
    lane.set_concurrency(None).await.unwrap();
    lane.set_weight(1).await.unwrap();
    lane.set_rate(None).await.unwrap();
    let keys = scene.dump().await.keys().join(" ");
    assert!(!["meta", "glimit", "grate", "gweight"].iter().any(|key| keys.contains(key)), "{keys}");
}

#[tokio::test]
async fn a_lane_leaves_the_ring_when_its_limit_falls_and_comes_back_when_it_rises() {
    let mut scene = scene("tune").await;
    for n in 0..4 {
        scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
    }
    let mut claimer = scene.claimer();
    assert_eq!(claimer.claim(1).await.unwrap().jobs.len(), 1);
    let lane = scene.queue.lane("a").unwrap();
    lane.set_concurrency(1).await.unwrap();
    assert_eq!(scene.command("LLEN @ring").await.int(), 0);
    let batch = claimer.claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (0, false));
    scene.command("DEL @marker").await;
    lane.set_concurrency(3).await.unwrap();
    assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "a raised limit wakes");
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 2);
    lane.set_concurrency(0).await.unwrap();
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 0);
}

#[tokio::test]
async fn a_rate_that_is_set_again_has_spent_what_it_had_spent() {
    let mut scene = scene("tune").await;
    for n in 0..5 {
        scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
        scene.enqueue_as(Draft::of(Work { n })).await;
    }
    let lane = scene.queue.lane("a").unwrap();
    let rate = Rate::per(1, HOUR).burst(2);
    let mut claimer = scene.claimer();
    let mut started = 0;
    for _ in 0..3 {
        scene.queue.set_rate(Rate::per(1, HOUR).burst(3)).await.unwrap();
        lane.set_rate(rate).await.unwrap();
        started += claimer.claim(10).await.unwrap().jobs.len();
    }
    assert_eq!(started, 3);
    // Of the three, two were of the lane: the rate of the queue was the narrower one.
    scene.queue.set_rate(None).await.unwrap();
    lane.set_rate(rate).await.unwrap();
    let jobs = claimer.claim(10).await.unwrap().jobs;
    assert!(jobs.iter().all(|job| job.group.is_none()), "{jobs:?}");
}

#[tokio::test]
async fn a_rate_that_is_raised_counts_at_once_whatever_the_old_one_had_spent() {
    let mut scene = scene("tune").await;
    for n in 0..200 {
        scene.enqueue_as(Draft::of(Work { n })).await;
    }
    // A hundred hours ahead.
    scene.queue.set_rate(Rate::per(1, HOUR).burst(100)).await.unwrap();
    let mut claimer = scene.claimer();
    assert_eq!(claimer.claim(1_000).await.unwrap().jobs.len(), 100);
    scene.queue.set_rate(Rate::per(1_000, HOUR)).await.unwrap();
    let batch = claimer.claim(1_000).await.unwrap();
    assert_eq!(batch.jobs.len(), 1);
    let next = batch.next_event.unwrap();
    assert!(next <= HOUR / 1_000 + Duration::from_millis(1), "{next:?}");
}

#[tokio::test]
async fn a_rate_says_when_the_next_job_may_start_and_nothing_when_one_may_now() {
    let mut scene = scene("tune").await;
    scene.queue.set_rate(Rate::per(1, HOUR / 60)).await.unwrap();
    let mut claimer = scene.claimer();
    assert_eq!(claimer.claim(1).await.unwrap().next_event, None);
    scene.queue.pause().await.unwrap();
    scene.enqueue().await;
    assert_eq!(claimer.claim(1).await.unwrap().next_event, None, "it is the pause that it waits for");
    scene.queue.resume().await.unwrap();
    scene.enqueue().await;
    let mut claimer = scene.claimer().lease(2 * HOUR);
    let batch = claimer.claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (1, false));
    let next = batch.next_event.unwrap();
    assert!(next > HOUR / 61 && next <= HOUR / 60 + Duration::from_millis(1), "{next:?}");
}

#[tokio::test]
async fn a_rate_that_is_set_ends_no_hold_of_the_queue() {
    let mut scene = scene("tune").await;
    let lease = scene.claimed().await;
    scene.queue.hold(&lease, HOUR).await.unwrap();
    for rate in [Some(Rate::per(100, HOUR)), Some(Rate::per(1, HOUR)), None] {
        scene.queue.set_rate(rate).await.unwrap();
        assert_eq!(scene.claimer().claim(1).await.unwrap().jobs.len(), 0, "{rate:?}");
    }
    scene.queue.resume().await.unwrap();
    scene.claim().await;
}

#[tokio::test]
async fn a_rate_that_is_set_ends_the_wait_for_the_one_before_and_no_hold_of_the_lane() {
    let mut scene = scene("tune").await;
    for n in 0..4 {
        scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
    }
    let lane = scene.queue.lane("a").unwrap();
    lane.set_rate(Rate::per(1, HOUR * 24)).await.unwrap();
    let mut claimer = scene.claimer();
    let lease = claimer.claim(10).await.unwrap().jobs[0].lease;
    // Shorter than the wait for the rate, and longer than this test.
    scene.queue.hold(&lease, HOUR).await.unwrap();
    let held = async || {
        let until = lane.state().await.unwrap().held_until?;
        Some(until.duration_since(std::time::SystemTime::now()).unwrap())
    };
    assert!(held().await.unwrap() > HOUR * 23);
    lane.set_rate(None).await.unwrap();
    assert!(held().await.unwrap() <= HOUR, "it still waits for what the third party has said");
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 0);
    // When that is over, nothing is left of it.
    scene.command("ZADD @held 1 a").await;
    scene.queue.promote().await.unwrap();
    assert_eq!(scene.command("EXISTS @held @gheld").await.int(), 0);
    assert_eq!(claimer.claim(1).await.unwrap().jobs.len(), 1);

    lane.set_rate(Rate::per(1, HOUR)).await.unwrap();
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 1);
    assert!(held().await.is_some());
    lane.set_rate(None).await.unwrap();
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 2, "of a wait for the rate nothing stays");
}

#[tokio::test]
async fn a_resume_ends_a_hold_of_a_lane_for_good() {
    let mut scene = scene("tune").await;
    scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    let lease = scene.claim().await.lease;
    scene.queue.hold(&lease, HOUR).await.unwrap();
    let lane = scene.queue.lane("a").unwrap();
    lane.resume().await.unwrap();
    lane.set_rate(Rate::per(1, HOUR)).await.unwrap();
    assert_eq!(scene.command("EXISTS @held @gheld").await.int(), 0);
    scene.claim().await;
}
