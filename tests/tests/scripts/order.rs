//! The lower priority first, then the older job, whichever way it came to wait.

use emq::{Draft, JobId};

use crate::scene::{MINUTE, Scene, Work, scene};

async fn claim_order(scene: &mut Scene) -> Vec<JobId> {
    let jobs = scene.claimer().claim(100).await.unwrap().jobs;
    jobs.iter().map(|job| job.lease.id()).collect()
}

#[tokio::test]
async fn priorities_of_the_whole_range() {
    let mut scene = scene("order").await;
    let mut ids = Vec::new();
    for priority in [0, i32::MAX, -1, i32::MIN, 1, 0] {
        ids.push(scene.enqueue_as(Draft::of(Work { n: 0 }).priority(priority)).await);
    }
    assert_eq!(claim_order(&mut scene).await, [ids[3], ids[2], ids[0], ids[5], ids[4], ids[1]]);
    assert_eq!(scene.queue.get(ids[3]).await.unwrap().unwrap().priority, i32::MIN);
}

#[tokio::test]
async fn a_priority_survives_every_way_back() {
    let mut scene = scene("order").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).priority(i32::MAX)).await;
    let expected = f64::from(i32::MAX);
    for way in ["release", "retry", "snooze", "reap", "revive"] {
        let lease = scene.claim().await.lease;
        match way {
            "release" => assert!(queue.release(&lease).await.unwrap().is_settled()),
            "retry" => assert!(queue.retry(&lease, MINUTE, "no").await.unwrap().is_settled()),
            "snooze" => assert!(queue.snooze(&lease, MINUTE).await.unwrap().is_settled()),
            "revive" => {
                queue.bury(&lease, "no").await.unwrap();
                queue.revive(id).await.unwrap();
            }
            _ => {
                scene.expire(id).await;
                queue.reap(None).await.unwrap();
            }
        }
        scene.make_due(id).await;
        queue.promote().await.unwrap();
        assert_eq!(scene.score("pending", id).await, expected, "{way}");
    }
}

#[tokio::test]
async fn the_older_runs_first_whichever_way_it_came_back() {
    let mut scene = scene("order").await;
    let queue = scene.queue.clone();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(scene.enqueue().await);
    }
    let jobs = scene.claimer().claim(100).await.unwrap().jobs;
    let leases: Vec<_> = jobs.iter().map(|job| job.lease).collect();
    ids.push(scene.enqueue().await);
    // Back in any order: by retry, reap, release, revive and snooze.
    queue.snooze(&leases[4], MINUTE).await.unwrap();
    queue.bury(&leases[3], "no").await.unwrap();
    queue.revive(ids[3]).await.unwrap();
    queue.release(&leases[2]).await.unwrap();
    scene.expire(ids[1]).await;
    queue.reap(None).await.unwrap();
    queue.retry(&leases[0], MINUTE, "no").await.unwrap();
    for id in [ids[4], ids[0]] {
        scene.make_due(id).await;
    }
    queue.promote().await.unwrap();
    assert_eq!(claim_order(&mut scene).await, ids);
}

#[tokio::test]
async fn jobs_of_one_call_run_in_its_order() {
    let mut scene = scene("order").await;
    let name = scene.queue.name().to_string();
    let jobs: Vec<_> = (0..100).map(|n| Draft::of(Work { n }).queue(&name)).collect();
    let tickets = scene.client.enqueue_many(jobs).await.unwrap();
    assert!(claim_order(&mut scene).await.into_iter().eq(tickets.iter().map(emq::Ticket::id)));
}
