use std::time::Duration;

use emq::{Admission, Draft, JobState, Place, PurgeError};

use crate::scene::{MINUTE, Work, scene};

#[tokio::test]
async fn the_jobs_of_a_place_go_and_what_was_claimed_is_remembered() {
    let mut scene = scene("purge").await;
    let queue = scene.queue.clone();
    let letters = [scene.dead().await, scene.dead().await];
    let waiting = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    let later = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    assert_eq!(queue.purge(Place::Dead).all().await.unwrap(), 2);
    for id in letters {
        assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Removed));
    }
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.dead, counts.pending, counts.scheduled), (0, 1, 1));
    assert_eq!(queue.purge(Place::Scheduled).all().await.unwrap(), 1);
    assert_eq!(queue.state(later).await.unwrap(), None, "nobody ever had a token of it");
    assert_eq!(queue.purge(Place::Pending).all().await.unwrap(), 1);
    assert_eq!(queue.state(waiting).await.unwrap(), None);
    assert_eq!(queue.enqueue(Work { n: 1 }).unique("k").await.unwrap().admission(), Admission::Enqueued);
    for place in [Place::Active, Place::Finished] {
        assert!(matches!(queue.purge(place).all().await, Err(PurgeError::Place { .. })));
    }
}

#[tokio::test]
async fn only_those_of_an_age_go_dead_letters_by_their_death_and_others_by_their_ids() {
    let mut scene = scene("purge").await;
    let queue = scene.queue.clone();
    let old = scene.dead().await;
    let new = scene.dead().await;
    let now = scene.now().await;
    scene.command(&format!("ZADD @dead XX {:.0} {old}", now - 3_600_000.0)).await;
    assert_eq!(queue.purge(Place::Dead).older_than(Duration::from_secs(1_800)).all().await.unwrap(), 1);
    assert_eq!(queue.state(new).await.unwrap(), Some(JobState::Dead));
    // Minted in May of 2025.
    let minted: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    queue.enqueue(Work { n: 7 }).id(minted).await.unwrap();
    let young = scene.enqueue().await;
    assert_eq!(queue.purge(Place::Pending).older_than(MINUTE).all().await.unwrap(), 1);
    assert_eq!(
        (queue.state(minted).await.unwrap(), queue.state(young).await.unwrap()),
        (None, Some(JobState::Pending))
    );
}

#[tokio::test]
async fn a_dead_letter_that_doesnt_say_when_it_died_is_as_old_as_its_id() {
    let mut scene = scene("purge").await;
    let queue = scene.queue.clone();
    let young = scene.dead().await;
    // As another implementation writes them.
    scene.command(&format!("ZADD @dead XX 0 {young}")).await;
    assert_eq!(queue.purge(Place::Dead).older_than(MINUTE).all().await.unwrap(), 0);
    // Minted in May of 2025.
    let old: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    queue.enqueue(Work { n: 7 }).id(old).await.unwrap();
    let lease = scene.claim().await.lease;
    queue.bury(&lease, "no").await.unwrap();
    scene.command(&format!("ZADD @dead XX 0 {old}")).await;
    assert_eq!(queue.purge(Place::Dead).older_than(MINUTE).all().await.unwrap(), 1);
    assert_eq!(queue.state(young).await.unwrap(), Some(JobState::Dead));
}

#[tokio::test]
async fn a_queue_is_drained_with_all_its_lanes_slice_by_slice() {
    let mut scene = scene("drain").await;
    let queue = scene.queue.clone();
    let lanes = ["a", "b", "c"];
    let drafts = (0..5_000).map(|n| {
        let draft = Draft::of(Work { n });
        if n % 4 == 0 { draft } else { draft.group(lanes[n as usize % 4 - 1]) }
    });
    queue.enqueue_many(drafts.collect::<Vec<_>>()).await.unwrap();
    queue.lane("b").unwrap().pause().await.unwrap();
    let held = scene.claimer().claim(1).await.unwrap().jobs.remove(0).lease;
    let later = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    let mut drain = queue.drain();
    let mut slices = Vec::new();
    while let Some(slice) = drain.next().await.unwrap() {
        assert!(slice.removed <= 1_000);
        slices.push(slice);
    }
    assert_eq!(slices.last().unwrap().total, 4_999);
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.unfinished(), counts.active, counts.scheduled), (2, 1, 1));
    assert_eq!(queue.state(later).await.unwrap(), Some(JobState::Scheduled));
    assert!(queue.complete(&held, emq::Completion::empty()).await.unwrap().is_settled());
}

#[tokio::test]
async fn a_drain_of_an_age_leaves_what_is_younger_in_the_flat_line_and_in_every_lane() {
    let mut scene = scene("drain").await;
    let queue = scene.queue.clone();
    let lane = |n: u32| format!("l{}", n % 3);
    // Minted in May of 2025, and each a second after the one before.
    let first = "JOB0JZGkP9AMvv".parse::<emq::JobId>().unwrap().number();
    let minted = |n: u32| emq::JobId::from_number(first + ((u64::from(n) * 1_000) << 22)).unwrap();
    let old = (0..3_200).map(|n| {
        let draft = Draft::of(Work { n }).id(minted(n));
        if n % 4 == 0 { draft } else { draft.group(lane(n)) }
    });
    queue.enqueue_many(old.collect::<Vec<_>>()).await.unwrap();
    queue.enqueue_many((0..9).map(|n| Draft::of(Work { n }).group(lane(n)).priority(-1))).await.unwrap();
    let young = scene.enqueue().await;
    assert_eq!(queue.drain().older_than(MINUTE).all().await.unwrap(), 3_200);
    assert_eq!(queue.counts().await.unwrap().pending, 10);
    assert_eq!(queue.state(young).await.unwrap(), Some(JobState::Pending));
    assert_eq!(scene.command("LLEN @ring").await.int(), 3);
    assert_eq!(queue.drain().older_than(MINUTE).all().await.unwrap(), 0);
    assert_eq!(queue.drain().all().await.unwrap(), 10);
    assert_eq!(scene.command("EXISTS @ring @lanes @pending").await.int(), 0);
}

#[tokio::test]
async fn an_obliteration_of_an_age_is_refused_and_deletes_nothing() {
    let mut scene = scene("obliterate").await;
    scene.enqueue().await;
    let queue = scene.queue.clone();
    let refused = scene.unchanged(queue.obliterate().older_than(MINUTE).all()).await;
    assert!(matches!(refused, Err(PurgeError::Age)), "{refused:?}");
}

#[tokio::test]
async fn a_drain_ends_where_a_lane_is_said_to_have_jobs_and_has_none() {
    let mut scene = scene("drain").await;
    scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    // Somebody who doesn't count has taken it.
    scene.command("DEL @g:a:pending").await;
    assert_eq!(scene.queue.drain().all().await.unwrap(), 0);
    assert_eq!(scene.queue.counts().await.unwrap().pending, 0);
}
