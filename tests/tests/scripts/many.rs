//! Twenty thousand at once, and the edge of a batch.

use emq::{Client, Completion, Draft, Keep, Lease, Place};
use support::Server;

use crate::scene::{LEASE, MINUTE, Scene, Work, scene};

/// Who leaves some of them behind has a server of its own: a dump looks through all of one.
const MANY: usize = 20_000;

async fn enqueue(client: &Client, scene: &Scene, count: usize, delayed: bool) -> Vec<emq::JobId> {
    let draft = |n| {
        let draft = Draft::of(Work { n: n as u32 }).queue(scene.queue.name().as_str());
        if delayed { draft.delay(MINUTE) } else { draft }
    };
    let tickets = client.enqueue_many((0..count).map(draft).collect::<Vec<_>>()).await.unwrap();
    tickets.iter().map(emq::Ticket::id).collect()
}

/// Sets the score of every member of a set, by a script of the test's own.
async fn rescore(scene: &mut Scene, set: &str, score: &str) {
    let key = format!("emq:{{{}}}:{set}", scene.queue.name());
    let script = "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do \
                  redis.call('ZADD', KEYS[1], ARGV[1], id) end return 1";
    assert_eq!(scene.raw.command(&["EVAL", script, "1", &key, score]).await.int(), 1);
}

#[tokio::test]
async fn twenty_thousand_jobs_go_through_every_place() {
    let mut scene = scene("many").await;
    let (client, queue) = (scene.client.clone(), scene.queue.clone());
    enqueue(&client, &scene, MANY, true).await;
    rescore(&mut scene, "schedule", "1").await;
    let mut rounds = 0;
    loop {
        let promoted = queue.promote().await.unwrap();
        rounds += 1;
        if promoted.next_due.is_none() {
            break;
        }
        assert_eq!(promoted.count, 1_000);
    }
    assert_eq!((rounds, queue.counts().await.unwrap().pending), (20, MANY as u64));

    let mut claimer = scene.claimer();
    let mut leases: Vec<Lease> = Vec::new();
    loop {
        let batch = claimer.claim(usize::MAX).await.unwrap();
        leases.extend(batch.jobs.iter().map(|job| job.lease));
        if !batch.more {
            break;
        }
    }
    assert_eq!(leases.len(), MANY);
    let extended = queue.extend(&leases, LEASE).await.unwrap();
    assert!(extended.len() == MANY && extended.iter().all(|each| *each == emq::Extended::Renewed));

    rescore(&mut scene, "active", "1").await;
    let mut dead = 0;
    loop {
        let reaped = queue.reap(Some(1)).await.unwrap();
        dead += reaped.dead.len();
        if !reaped.more {
            break;
        }
    }
    assert_eq!((dead, queue.counts().await.unwrap().dead), (MANY, MANY as u64));

    let keep = Keep { count: 0, ..Keep::default() };
    let mut trimmed = 0;
    loop {
        let each = queue.trim(keep).await.unwrap();
        trimmed += each.dead;
        if !each.more {
            break;
        }
    }
    assert_eq!(trimmed, MANY as u64);
    rescore(&mut scene, "done", "1").await;
    let mut forgotten = 0;
    while queue.counts().await.unwrap().remembered > 0 {
        forgotten += queue.trim(Keep::default()).await.unwrap().forgotten;
    }
    assert_eq!(forgotten, MANY as u64);
    scene.command("DEL @claims @marker @metrics:failed").await;
    assert!(scene.dump().await.is_empty(), "nothing is left behind");
}

#[tokio::test]
async fn twenty_thousand_ids_without_a_job_are_dropped_with_a_count_from_every_place() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "many").await;
    let queue = scene.queue.clone();
    let script = "for n = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], 1, string.format('JOB%011d', n)) end \
                  return redis.call('ZCARD', KEYS[1])";
    for set in ["pending", "active", "schedule", "dead"] {
        let key = format!("emq:{{{}}}:{set}", queue.name());
        let count = scene.raw.command(&["EVAL", script, "1", &key, &MANY.to_string()]).await.int();
        assert_eq!(count, MANY as i64);
    }
    let waiting = scene.enqueue_as(Draft::of(Work { n: 0 }).priority(i32::MAX)).await;
    let mut dropped = [0; 3];
    loop {
        let reaped = queue.reap(Some(1)).await.unwrap();
        dropped[0] += reaped.dropped;
        if !reaped.more {
            break;
        }
    }
    loop {
        let promoted = queue.promote().await.unwrap();
        dropped[1] += promoted.dropped;
        if promoted.next_due.is_none() {
            break;
        }
    }
    let mut claimer = scene.claimer();
    let job = loop {
        let batch = claimer.claim(1_000).await.unwrap();
        dropped[2] += batch.dropped;
        if let Some(job) = batch.jobs.first() {
            break job.lease;
        }
        assert!(batch.more, "the last one waits behind them");
    };
    assert_eq!((job.id(), dropped), (waiting, [MANY as u64; 3]));
    while queue.trim(Keep { count: 0, ..Keep::default() }).await.unwrap().more {}
    assert_eq!(queue.counts().await.unwrap().dead, 0);
}

#[tokio::test]
async fn twenty_thousand_leases_that_ran_out_at_once_are_all_recovered() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "many").await;
    let (client, queue) = (scene.client.clone(), scene.queue.clone());
    enqueue(&client, &scene, MANY, false).await;
    let mut claimer = scene.claimer();
    while claimer.claim(1_000).await.unwrap().more {}
    rescore(&mut scene, "active", "1").await;
    let mut recovered = 0;
    loop {
        let reaped = queue.reap(Some(3)).await.unwrap();
        recovered += reaped.recovered.len();
        if !reaped.more {
            break;
        }
    }
    let counts = queue.counts().await.unwrap();
    assert_eq!((recovered, counts.pending, counts.active, counts.dead), (MANY, MANY as u64, 0, 0));
}

#[tokio::test]
async fn a_thousand_fit_and_one_more_is_left_over() {
    let mut scene = scene("many").await;
    let (client, queue) = (scene.client.clone(), scene.queue.clone());
    for (count, more) in [(1_000, false), (1_001, true)] {
        enqueue(&client, &scene, count, true).await;
        rescore(&mut scene, "schedule", "1").await;
        assert_eq!(queue.promote().await.unwrap().next_due.is_some(), more);
        queue.promote().await.unwrap();
        let mut claimer = scene.claimer();
        let batch = claimer.claim(1_000).await.unwrap();
        assert_eq!((batch.jobs.len(), batch.more), (1_000, more));
        claimer.claim(1_000).await.unwrap();
        rescore(&mut scene, "active", "1").await;
        let reaped = queue.reap(None).await.unwrap();
        assert_eq!((reaped.recovered.len(), reaped.more), (1_000, more));
        queue.reap(None).await.unwrap();
        assert_eq!(queue.list(Place::Pending, 0, usize::MAX).await.unwrap().len(), 1_000);
        loop {
            let batch = claimer.claim(1_000).await.unwrap();
            for job in &batch.jobs {
                queue.complete(&job.lease, Completion::empty()).await.unwrap();
            }
            if !batch.more {
                break;
            }
        }
        rescore(&mut scene, "done", "1").await;
        let trimmed = queue.trim(Keep::default()).await.unwrap();
        assert_eq!((trimmed.forgotten, trimmed.more), (1_000, true), "whether that was all isn't known yet");
        assert!(!queue.trim(Keep::default()).await.unwrap().more);
    }
}

#[tokio::test]
async fn no_jobs_are_no_call() {
    let scene = scene("many").await;
    let none = Vec::<Work>::new();
    assert_eq!(scene.client.enqueue_many(none).await.unwrap().len(), 0);
}
