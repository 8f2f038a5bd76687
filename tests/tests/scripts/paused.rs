//! Whatever becomes of a job while its queue or its lane is paused: it doesn't start before that is resumed, and then it does.

use emq::{Completion, Draft, Lease, Schedule, Unique};

use crate::scene::{MINUTE, Scene, Work, scene};

/// Every way to a waiting place.
const WAYS: [&str; 15] = [
    "enqueue",
    "promote",
    "retry",
    "snooze",
    "release",
    "hold",
    "reap",
    "revive",
    "reassign",
    "update",
    "run now",
    "unique successor",
    "recurring job run now",
    "freed slot",
    "raised limit",
];

/// Claims the only job that waits.
async fn claimed(scene: &mut Scene, draft: Draft<Work>) -> Lease {
    scene.enqueue_as(draft.group("a")).await;
    scene.claim().await.lease
}

#[tokio::test]
async fn a_job_that_comes_to_wait_in_any_way_starts_when_the_pause_ends_and_not_before() {
    for whole in [true, false] {
        for way in WAYS {
            let mut scene = scene("paused").await;
            let queue = scene.queue.clone();
            let lane = queue.lane("a").unwrap();
            let draft = || Draft::of(Work { n: 1 });
            // Before the pause: a job that a worker holds, is scheduled, dead, in another lane, or kept back.
            let mut lease = None;
            let mut id = None;
            match way {
                "retry" | "snooze" | "release" | "hold" | "reap" => lease = Some(claimed(&mut scene, draft()).await),
                "revive" => {
                    let held = claimed(&mut scene, draft()).await;
                    queue.bury(&held, "no").await.unwrap();
                    id = Some(held.id());
                }
                "unique successor" => {
                    lease = Some(claimed(&mut scene, draft().unique(Unique::key("k").then_once())).await);
                    queue.enqueue(Work { n: 2 }).group("a").unique(Unique::key("k").then_once()).await.unwrap();
                }
                "promote" | "update" | "run now" => id = Some(scene.enqueue_as(draft().group("a").delay(MINUTE)).await),
                "recurring job run now" => {
                    let hourly = Schedule::every(60 * MINUTE);
                    queue.recurring().upsert("tick", hourly, Work { n: 1 }).group("a").await.unwrap();
                }
                "freed slot" | "raised limit" => {
                    lane.set_concurrency(1).await.unwrap();
                    lease = Some(claimed(&mut scene, draft()).await);
                    scene.enqueue_as(draft().group("a")).await;
                }
                _ => {}
            }
            if way == "reassign" {
                queue.lane("b").unwrap().pause().await.unwrap();
                id = Some(scene.enqueue_as(draft().group("b")).await);
            }
            if whole { queue.pause().await } else { lane.pause().await }.unwrap();
            match (way, lease, id) {
                ("enqueue", ..) => drop(scene.enqueue_as(draft().group("a")).await),
                ("promote", _, Some(id)) => {
                    scene.make_due(id).await;
                    assert_eq!(queue.promote().await.unwrap().count, 1);
                }
                ("retry", Some(lease), _) => drop(queue.retry(&lease, MINUTE / 60_000, "no").await.unwrap()),
                ("snooze", Some(lease), _) => drop(queue.snooze(&lease, MINUTE / 60_000).await.unwrap()),
                ("release", Some(lease), _) => drop(queue.release(&lease).await.unwrap()),
                ("hold", Some(lease), _) => drop(queue.hold(&lease, MINUTE / 60_000).await.unwrap()),
                ("reap", Some(lease), _) => {
                    scene.expire(lease.id()).await;
                    assert_eq!(queue.reap(None).await.unwrap().recovered.len(), 1);
                }
                ("revive", _, Some(id)) => drop(queue.revive(id).await.unwrap()),
                ("reassign", _, Some(id)) => drop(queue.reassign(id, Some(&lane)).await.unwrap()),
                ("update", _, Some(id)) => drop(queue.update(id).now().priority(-3).await.unwrap()),
                ("run now", _, Some(id)) => drop(queue.update(id).now().await.unwrap()),
                ("unique successor" | "freed slot", Some(lease), _) => {
                    assert!(queue.complete(&lease, Completion::empty()).await.unwrap().is_settled());
                }
                ("recurring job run now", ..) => drop(queue.recurring().run_now("tick").await.unwrap()),
                ("raised limit", ..) => lane.set_concurrency(2).await.unwrap(),
                _ => panic!("nothing is done about {way}"),
            }
            // What a worker's beat does, over and over.
            tokio::time::sleep(MINUTE / 12_000).await;
            for _ in 0..2 {
                queue.promote().await.unwrap();
                queue.trim(emq::Keep::default()).await.unwrap();
                let batch = scene.claimer().claim(10).await.unwrap();
                assert_eq!((batch.jobs.len(), batch.more), (0, false), "{way}, paused");
            }
            if whole { queue.resume().await } else { lane.resume().await }.unwrap();
            assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "{way}: a resume wakes");
            assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 1, "{way}, resumed");
        }
    }
}
