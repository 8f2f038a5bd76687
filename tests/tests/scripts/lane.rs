use std::time::{Duration, SystemTime};

use emq::{Draft, NameError, Rate};

use crate::scene::{Work, scene};

#[tokio::test]
async fn a_lane_that_never_was_has_nothing() {
    let mut scene = scene("lane").await;
    let lane = scene.queue.lane("a").unwrap();
    let state = scene.unchanged(lane.state()).await.unwrap();
    assert_eq!((state.waiting, state.active, state.paused, state.weight), (0, 0, false, 1));
    assert_eq!((state.concurrency, state.rate, state.held_until), (None, None, None));
    assert!(matches!(scene.queue.lane("a b"), Err(NameError::Character { .. })));
}

#[tokio::test]
async fn its_state_says_what_waits_what_runs_and_what_is_set() {
    let mut scene = scene("lane").await;
    for n in 0..4 {
        scene.enqueue_as(Draft::of(Work { n }).group("a").priority(-(n as i32))).await;
    }
    let lane = scene.queue.lane("a").unwrap();
    lane.set_rate(Rate::per(1, Duration::from_secs(60))).await.unwrap();
    assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 1);
    lane.pause().await.unwrap();
    let state = lane.state().await.unwrap();
    assert_eq!((state.waiting, state.active, state.paused), (3, 1, true));
    let wait = state.held_until.unwrap().duration_since(SystemTime::now()).unwrap();
    assert!(wait <= Duration::from_secs(61), "{wait:?}");
    let listed = lane.list(1, 10).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.score).collect::<Vec<_>>(), [-1.0, 0.0]);
}
