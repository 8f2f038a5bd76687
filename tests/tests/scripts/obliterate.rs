use std::time::Duration;

use emq::{Draft, Extended, PurgeError};

use crate::scene::{LEASE, MINUTE, Work, scene};

#[tokio::test]
async fn everything_of_a_queue_goes_and_nothing_else() {
    let mut scene = scene("obliterate").await;
    let mut other = crate::scene::scene("other").await;
    other.enqueue().await;
    let queue = scene.queue.clone();
    scene.dead().await;
    let done = scene.claimed().await;
    queue.complete(&done, emq::Completion::of(&1).unwrap()).await.unwrap();
    queue.enqueue_many((0..2_500).map(|n| Draft::of(Work { n }).group(format!("lane-{}", n % 7)))).await.unwrap();
    queue.enqueue_many((0..1_200).map(|n| Draft::of(Work { n }).delay(MINUTE))).await.unwrap();
    queue.enqueue(Work { n: 0 }).unique("k").await.unwrap();
    queue.lane("lane-1").unwrap().set_weight(3).await.unwrap();
    queue.lane("lane-2").unwrap().pause().await.unwrap();
    let hourly = || emq::Schedule::every(Duration::from_secs(3_600));
    queue.recurring().upsert("one", hourly(), Work { n: 1 }).await.unwrap();
    queue.recurring().upsert("two", hourly(), Work { n: 2 }).await.unwrap();
    queue.recurring().pause("two").await.unwrap();
    let held = scene.claimer().claim(2).await.unwrap().jobs.remove(0).lease;

    let error = queue.obliterate().all().await.unwrap_err();
    assert!(matches!(error, PurgeError::Active), "{error}");
    assert!(!queue.counts().await.unwrap().paused, "what is refused has written nothing");
    let mut purge = queue.obliterate().force();
    let mut slices = 0;
    while let Some(slice) = purge.next().await.unwrap() {
        assert!(slice.removed <= 1_000);
        slices += 1;
    }
    assert!(slices >= 4, "{slices}");
    assert!(scene.dump().await.is_empty(), "{:?}", scene.dump().await.lines());
    assert_eq!(queue.extend(&[held], LEASE).await.unwrap(), [Extended::Lost]);
    assert_eq!(other.queue.counts().await.unwrap().pending, 1);
    // And it can be used again.
    scene.claimed().await;
}

#[tokio::test]
async fn a_lane_that_only_another_implementation_has_filled_goes_too() {
    let mut scene = scene("obliterate").await;
    for (id, lane) in [("JOB0KHTOWnGLuC", "a"), ("JOB0NgWEfAEJfs", "b")] {
        scene.command(&format!("HSET @job:{id} state pending attempts 0 payload {{}} group {lane}")).await;
        scene.command(&format!("ZADD @g:{lane}:pending 0 {id}")).await;
        scene.command(&format!("RPUSH @ring {lane}")).await;
    }
    assert_eq!(scene.queue.obliterate().all().await.unwrap(), 2);
    assert!(scene.dump().await.is_empty(), "{:?}", scene.dump().await.lines());
}

#[tokio::test]
async fn a_slice_that_is_left_at_that_frees_the_slot_of_each_job_it_has_deleted() {
    let mut scene = scene("obliterate").await;
    let queue = scene.queue.clone();
    let lane = queue.lane("a").unwrap();
    queue.enqueue_many((0..1_100).map(|n| Draft::of(Work { n }).group("a"))).await.unwrap();
    assert_eq!(scene.claimer().claim(1_000).await.unwrap().jobs.len(), 1_000);
    assert_eq!(scene.claimer().claim(50).await.unwrap().jobs.len(), 50);
    let mut purge = queue.obliterate().force();
    let slice = purge.next().await.unwrap().unwrap();
    assert_eq!(slice.removed, 1_000);
    drop(purge);
    let left = queue.counts().await.unwrap().active;
    assert_eq!((lane.state().await.unwrap().active, scene.command("HLEN @slots").await.int()), (left, left as i64));
    assert!(left > 0);
    // Whoever goes on with the queue has its limits.
    lane.set_concurrency(left as u32 + 3).await.unwrap();
    queue.resume().await.unwrap();
    queue.enqueue_many((0..10).map(|n| Draft::of(Work { n }).group("a"))).await.unwrap();
    assert_eq!(scene.claimer().claim(100).await.unwrap().jobs.len(), 3);
}

#[tokio::test]
async fn deduplication_keys_that_have_outlived_their_jobs_go_too() {
    let mut scene = scene("obliterate").await;
    let queue = scene.queue.clone();
    let unique = |n: u32| emq::Unique::key(format!("k{n}")).for_(MINUTE);
    let jobs = (0..1_001).map(|n| Draft::of(Work { n }).unique(unique(n)));
    queue.enqueue_many(jobs).await.unwrap();
    for _ in 0..2 {
        for job in scene.claimer().claim(1_000).await.unwrap().jobs {
            queue.complete(&job.lease, emq::Completion::empty()).await.unwrap();
        }
    }
    assert!(queue.enqueue(Work { n: 1 }).unique(unique(1)).await.unwrap().is_duplicate());
    queue.obliterate().all().await.unwrap();
    assert!(scene.dump().await.is_empty(), "{:?}", scene.dump().await.lines());
    assert!(!queue.enqueue(Work { n: 1 }).unique(unique(1)).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn a_lane_behind_a_thousand_that_others_have_emptied_goes_too() {
    let mut scene = scene("obliterate").await;
    let members: String = (0..1_000).map(|n| format!(" 1 empty-{n}")).collect();
    scene.command(&format!("ZADD @lanes{members}")).await;
    let jobs = (0..2).map(|n| Draft::of(Work { n }).group("full"));
    scene.queue.enqueue_many(jobs).await.unwrap();
    assert_eq!(scene.queue.obliterate().all().await.unwrap(), 2);
    assert!(scene.dump().await.is_empty(), "{:?}", scene.dump().await.lines());
}
