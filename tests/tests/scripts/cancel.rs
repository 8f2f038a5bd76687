use std::time::Duration;

use emq::{Admission, Cancelled, Completion, DEFAULT_RETENTION, Draft, Extended, JobState, Settled};

use crate::scene::{LEASE, MINUTE, Work, assert_after, scene};

#[tokio::test]
async fn a_waiting_job_is_gone_at_once_and_its_id_is_remembered() {
    let mut scene = scene("cancel").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k").group("north")).await;
    scene.command(&format!("RPUSH @job:{id}:logs one")).await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (cancelled, changes) = scene.changes(queue.cancel(id)).await;
    let after = scene.now().await;
    assert_eq!(cancelled.unwrap(), Cancelled::AtOnce);
    assert_eq!(
        changes,
        [
            "- de:k string = J1",
            "+ done zset J1 @ T",
            "- g:north:pending zset J1 @ 0",
            "- job:J1 hash attempts = 0",
            "- job:J1 hash did = k",
            "- job:J1 hash group = north",
            "- job:J1 hash more = 1",
            "- job:J1 hash name = work",
            "- job:J1 hash payload = {\"n\":0}",
            "- job:J1 hash state = pending",
            "- job:J1:logs list [0] = one",
            "- lanes zset north @ 1",
            "- meta hash in_lanes = 1",
            "- ring list [0] = north",
        ]
    );
    let score = scene.score("done", id).await;
    assert_after(score.floor(), DEFAULT_RETENTION, before, after);
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Cancelled));
    assert_eq!(queue.get(id).await.unwrap().unwrap().state, JobState::Cancelled);
    assert_eq!(scene.unchanged(queue.cancel(id)).await.unwrap(), Cancelled::AtOnce, "it stays so");
    let again = scene.queue.enqueue(Work { n: 0 }).id(id).await.unwrap();
    assert_eq!(again.admission(), Admission::Duplicate(id), "an enqueue that comes late doesn't bring it back");
}

#[tokio::test]
async fn a_scheduled_and_a_dead_one_are_gone_and_a_finished_one_was() {
    let mut scene = scene("cancel").await;
    let scheduled = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    let dead = scene.dead().await;
    let done = scene.claimed().await;
    let queue = scene.queue.clone();
    queue.complete(&done, Completion::empty()).await.unwrap();
    for id in [scheduled, dead] {
        assert_eq!(queue.cancel(id).await.unwrap(), Cancelled::AtOnce);
        assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Cancelled));
    }
    assert_eq!(scene.unchanged(queue.cancel(done.id())).await.unwrap(), Cancelled::Gone);
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.scheduled, counts.dead, counts.remembered), (0, 0, 3));
}

#[tokio::test]
async fn the_holder_of_a_running_one_learns_of_it_and_settles_it() {
    let mut scene = scene("cancel").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k").group("north")).await;
    let lease = scene.claim().await.lease;
    let queue = scene.queue.clone();
    let (cancelled, changes) = scene.changes(queue.cancel(id)).await;
    assert_eq!((cancelled.unwrap(), changes), (Cancelled::Asked, vec!["+ job:J1 hash cancel = 3600000".to_owned()]));
    let until = scene.score("active", id).await;
    assert_eq!(scene.unchanged(queue.extend(&[lease], MINUTE)).await.unwrap(), [Extended::Cancelled]);
    assert_eq!(scene.score("active", id).await, until, "the lease isn't renewed");

    assert_eq!(queue.cancel_held(&lease).await.unwrap(), Settled::Accepted);
    assert_eq!(scene.unchanged(queue.cancel_held(&lease)).await.unwrap(), Settled::Repeated);
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Cancelled));
    assert!(!queue.enqueue(Work { n: 0 }).unique("k").await.unwrap().is_duplicate(), "its key is free");
    let left = scene.dump().await;
    assert!(!left.lines().iter().any(|line| line.contains("gactive") || line.contains("slots")), "its slot is free");
}

#[tokio::test]
async fn a_job_that_goes_back_ends_instead() {
    let mut scene = scene("cancel").await;
    let queue = scene.queue.clone();
    for verb in ["retry", "snooze", "release", "bury"] {
        let id = scene.enqueue_as(Draft::of(Work { n: 0 }).group("north").unique("k")).await;
        let lease = scene.claim().await.lease;
        queue.cancel(id).await.unwrap();
        for _ in 0..2 {
            let settled = match verb {
                "retry" => queue.retry(&lease, Duration::ZERO, "no").await,
                "snooze" => queue.snooze(&lease, Duration::ZERO).await,
                "release" => queue.release(&lease).await,
                _ => queue.bury(&lease, "no").await,
            };
            assert_eq!(settled.unwrap(), Settled::Cancelled, "{verb}");
        }
        assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Cancelled), "{verb}");
        let counts = queue.counts().await.unwrap();
        assert_eq!((counts.unfinished(), counts.dead, counts.failed), (0, 0, 0), "{verb}");
        let left = scene.dump().await.lines().join("\n");
        assert!(!["gactive", "slots", "de:k", "job:"].iter().any(|key| left.contains(key)), "{verb}: {left}");
    }
}

#[tokio::test]
async fn a_job_whose_worker_is_gone_ends_when_its_lease_has_run_out() {
    let mut scene = scene("cancel").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    queue.cancel(lease.id()).await.unwrap();
    scene.expire(lease.id()).await;
    let reaped = queue.reap(Some(3)).await.unwrap();
    assert_eq!((reaped.recovered, reaped.dead, reaped.cancelled), (vec![], vec![], vec![lease.id()]));
    assert_eq!(scene.unchanged(queue.complete(&lease, Completion::empty())).await.unwrap(), Settled::Cancelled);
}

#[tokio::test]
async fn a_run_that_is_done_first_is_done() {
    let mut scene = scene("cancel").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    queue.cancel(lease.id()).await.unwrap();
    assert_eq!(queue.complete(&lease, Completion::empty()).await.unwrap(), Settled::Accepted);
    assert_eq!(queue.state(lease.id()).await.unwrap(), Some(JobState::Finished));
}

#[tokio::test]
async fn a_job_that_another_implementation_has_put_back_never_runs_again() {
    let mut scene = scene("cancel").await;
    let lease = scene.claimed().await;
    let id = lease.id();
    let queue = scene.queue.clone();
    queue.cancel(id).await.unwrap();
    scene.command(&format!("ZREM @active {id}")).await;
    scene.command(&format!("ZADD @pending 0 {id}")).await;
    assert_eq!(scene.claimer().claim(1).await.unwrap().jobs.len(), 0);
    assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Cancelled));
}

#[tokio::test]
async fn a_dead_letter_that_is_revived_runs_although_it_had_been_cancelled() {
    let mut scene = scene("cancel").await;
    let id = scene.dead().await;
    // By a worker of another implementation, that doesn't know of cancellations.
    scene.command(&format!("HSET @job:{id} cancel 3600000")).await;
    scene.queue.revive(id).await.unwrap();
    let lease = scene.claim().await.lease;
    assert_eq!(scene.queue.extend(&[lease], LEASE).await.unwrap(), [Extended::Renewed]);
}

#[tokio::test]
async fn a_job_to_be_cancelled_stays_where_it_is_as_long_as_its_end_cant_be_remembered() {
    for verb in ["retry", "snooze", "release", "hold", "bury", "cancel_held", "reap", "claim"] {
        let mut scene = scene("cancel").await;
        let queue = scene.queue.clone();
        let lease = scene.claimed().await;
        assert_eq!(queue.cancel(lease.id()).await.unwrap(), Cancelled::Asked);
        match verb {
            "reap" => scene.expire(lease.id()).await,
            // Put back by somebody who knows of no cancellation.
            "claim" => {
                scene.command(&format!("ZREM @active {}", lease.id())).await;
                scene.command(&format!("ZADD @pending 0 {}", lease.id())).await;
            }
            _ => {}
        }
        scene.command("SET @done text").await;
        let mut claimer = scene.claimer();
        let call = async {
            match verb {
                "retry" => queue.retry(&lease, MINUTE, "no").await.map(drop),
                "snooze" => queue.snooze(&lease, MINUTE).await.map(drop),
                "release" => queue.release(&lease).await.map(drop),
                "hold" => queue.hold(&lease, MINUTE).await.map(drop),
                "bury" => queue.bury(&lease, "no").await.map(drop),
                "cancel_held" => queue.cancel_held(&lease).await.map(drop),
                "reap" => queue.reap(None).await.map(drop),
                _ => claimer.claim(1).await.map(drop),
            }
        };
        assert!(scene.unchanged(call).await.is_err(), "{verb}");
    }
}
