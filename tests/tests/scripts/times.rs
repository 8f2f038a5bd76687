//! Every wait and every time, however odd.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use emq::{Completion, Draft, JobState};

use crate::scene::{LEASE, MINUTE, Work, assert_after, scene};

/// What a longer wait is taken for: 100 years.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[tokio::test]
async fn a_wait_of_any_length() {
    let mut scene = scene("times").await;
    let queue = scene.queue.clone();
    for (wait, expected) in [
        (Duration::ZERO, Duration::ZERO),
        (Duration::from_nanos(1), Duration::from_millis(1)),
        (Duration::from_micros(1_500), Duration::from_millis(2)),
        (Duration::from_millis(u64::from(u32::MAX)), Duration::from_millis(u64::from(u32::MAX))),
        (Duration::MAX, CENTURY),
        (Duration::from_millis(u64::MAX), CENTURY),
    ] {
        for verb in ["retry", "snooze"] {
            let lease = scene.claimed().await;
            let before = scene.now().await;
            let settled =
                if verb == "retry" { queue.retry(&lease, wait, "no").await } else { queue.snooze(&lease, wait).await };
            assert!(settled.unwrap().is_settled());
            let after = scene.now().await;
            assert_after(scene.score("schedule", lease.id()).await, expected, before, after);
        }
        if wait > Duration::ZERO {
            let before = scene.now().await;
            let id = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(wait)).await;
            let after = scene.now().await;
            assert_after(scene.score("schedule", id).await, expected, before, after);
        }
    }
}

#[tokio::test]
async fn a_time_of_any_year() {
    let mut scene = scene("times").await;
    let past = [
        UNIX_EPOCH - Duration::from_secs(1 << 40),
        UNIX_EPOCH - Duration::from_nanos(1),
        UNIX_EPOCH,
        SystemTime::now(),
    ];
    for time in past {
        let id = scene.enqueue_as(Draft::of(Work { n: 0 }).at(time)).await;
        assert_eq!(scene.queue.state(id).await.unwrap(), Some(JobState::Pending), "{time:?}");
    }
    let year_2100 = 4_102_444_800_000_u64;
    let year_9999 = 253_402_300_799_999_u64;
    for (time, ms) in [(year_2100, year_2100), (year_9999, year_9999), (u64::MAX / 1_000, year_9999)] {
        let id = scene.enqueue_as(Draft::of(Work { n: 0 }).at(UNIX_EPOCH + Duration::from_millis(time))).await;
        assert_eq!(scene.score("schedule", id).await, ms as f64);
    }
    let part = UNIX_EPOCH + Duration::from_millis(year_2100) + Duration::from_nanos(1);
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).at(part)).await;
    assert_eq!(scene.score("schedule", id).await, (year_2100 + 1) as f64, "never before its time");
}

#[tokio::test]
async fn a_lease_of_any_length() {
    let mut scene = scene("times").await;
    // A claim's lease is also counted by this process's own clock, which reaches less far.
    let longest = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    for (term, expected) in [(Duration::ZERO, Duration::from_millis(1)), (Duration::MAX, longest)] {
        let id = scene.enqueue().await;
        let mut claimer = scene.queue.claimer("w").lease(term);
        let before = scene.now().await;
        let lease = claimer.claim(1).await.unwrap().jobs[0].lease;
        let after = scene.now().await;
        assert_after(scene.score("active", id).await, expected, before, after);
        scene.queue.extend(&[lease], Duration::MAX).await.unwrap();
        assert!(scene.score("active", id).await >= before + CENTURY.as_millis() as f64);
    }
}

#[tokio::test]
async fn a_retention_of_any_length() {
    let mut scene = scene("times").await;
    for (retention, expected) in [(Duration::from_nanos(1), MINUTE), (Duration::MAX, CENTURY)] {
        let lease = scene.claimed().await;
        let before = scene.now().await;
        let result = Completion::of("x").unwrap();
        scene.queue.complete_for(&lease, result.clone(), retention).await.unwrap();
        let after = scene.now().await;
        assert_after(scene.score("done", lease.id()).await, expected, before, after);
        assert!(scene.queue.complete_for(&lease, result, retention).await.unwrap().is_settled(), "told so");
    }
}

#[tokio::test]
async fn a_score_that_is_no_time_is_due_or_never() {
    let mut scene = scene("times").await;
    let never = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    scene.command(&format!("ZADD @schedule inf {never}")).await;
    let batch = scene.claimer().claim(1).await.unwrap();
    assert!(batch.next_event.is_none_or(|wait| wait > LEASE), "{batch:?}");
    assert_eq!(scene.queue.promote().await.unwrap().count, 0);
    scene.command(&format!("ZADD @schedule -inf {never}")).await;
    assert_eq!(scene.claimer().claim(1).await.unwrap().next_event, Some(Duration::ZERO));
    assert_eq!(scene.queue.promote().await.unwrap().count, 1);
}

#[tokio::test]
async fn no_key_of_an_unfinished_job_runs_out() {
    let mut scene = scene("times").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    for _ in 0..5 {
        let lease = scene.claim().await.lease;
        queue.retry(&lease, MINUTE, "no").await.unwrap();
        scene.make_due(id).await;
        queue.promote().await.unwrap();
    }
    let dump = scene.dump().await;
    assert!(!dump.is_empty() && dump.keys().iter().all(|key| !dump.expires(key)), "{dump}");
}
