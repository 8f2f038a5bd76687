//! The faults of the original that can occur by now, each by its number in the protocol.

use std::time::Duration;

use emq::{Client, Completion, Draft, Extended, JobState, Keep, Settled};

use crate::scene::{LEASE, MINUTE, Scene, Work, scene};

#[tokio::test]
async fn fault_1_an_extension_after_a_retry_puts_the_job_into_two_places() {
    let mut scene = scene("fault").await;
    let lease = scene.claimed().await;
    scene.queue.retry(&lease, MINUTE, "no").await.unwrap();
    assert_eq!(scene.queue.extend(&[lease], LEASE).await.unwrap(), [Extended::Lost]);
    let counts = scene.queue.counts().await.unwrap();
    assert_eq!((counts.active, counts.scheduled), (0, 1));
}

#[tokio::test]
async fn fault_1_a_second_settle_deletes_a_row_that_is_still_scheduled() {
    let mut scene = scene("fault").await;
    let lease = scene.claimed().await;
    scene.queue.retry(&lease, MINUTE, "no").await.unwrap();
    assert_eq!(scene.queue.complete(&lease, Completion::empty()).await.unwrap(), Settled::Stale);
    assert_eq!(scene.queue.state(lease.id()).await.unwrap(), Some(JobState::Scheduled));
    assert_eq!(scene.queue.counts().await.unwrap().completed, 0);
}

#[tokio::test]
async fn fault_3_a_crash_looping_job_is_reaped_for_ever() {
    let mut scene = scene("fault").await;
    let id = scene.enqueue().await;
    let mut runs = 0;
    while scene.queue.state(id).await.unwrap() == Some(JobState::Pending) {
        scene.claim().await;
        scene.expire(id).await;
        scene.queue.reap(Some(emq::DEFAULT_MAX_STALLED)).await.unwrap();
        runs += 1;
    }
    assert_eq!((runs, scene.queue.state(id).await.unwrap()), (3, Some(JobState::Dead)));
    assert_eq!(scene.field(id, "last_error").await.as_deref(), Some("stalled"));
}

#[tokio::test]
async fn fault_3_a_job_dies_at_its_first_stall() {
    let mut scene = scene("fault").await;
    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    let reaped = scene.queue.reap(Some(emq::DEFAULT_MAX_STALLED)).await.unwrap();
    assert_eq!((reaped.recovered, reaped.dead), (vec![lease.id()], vec![]));
}

#[tokio::test]
async fn fault_4_duplicate_protection_ends_when_the_job_ends() {
    let mut scene = scene("fault").await;
    let lease = scene.claimed().await;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    assert!(scene.queue.enqueue(Work { n: 0 }).id(lease.id()).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn fault_4_a_stale_holder_settles_a_new_job_of_the_same_id() {
    let mut scene = scene("fault").await;
    let lost = scene.claimed().await;
    scene.expire(lost.id()).await;
    scene.queue.reap(None).await.unwrap();
    // Removed, and buried and trimmed: the id stays taken each time.
    scene.queue.remove(lost.id()).await.unwrap();
    assert!(scene.queue.enqueue(Work { n: 0 }).id(lost.id()).await.unwrap().is_duplicate());

    let lost = scene.claimed().await;
    scene.expire(lost.id()).await;
    scene.queue.reap(Some(1)).await.unwrap();
    scene.queue.trim(Keep { count: 0, ..Keep::default() }).await.unwrap();
    assert_eq!(scene.queue.state(lost.id()).await.unwrap(), Some(JobState::Removed));
    assert!(scene.queue.enqueue(Work { n: 0 }).id(lost.id()).await.unwrap().is_duplicate());
    assert_eq!(scene.queue.counts().await.unwrap().unfinished(), 0);
}

#[tokio::test]
async fn fault_5_many_jobs_take_one_round_trip_and_one_wake() {
    // A server of its own, since the others' calls would be counted as well.
    let server = support::Server::start().await;
    let mut scene = Scene::on(&server, "fault").await;
    let before = scripts_run(&mut scene).await;
    let jobs: Vec<_> = (0..100).map(|n| Draft::of(Work { n }).queue(scene.queue.name().as_str())).collect();
    scene.client.enqueue_many(jobs).await.unwrap();
    // The first call of a script also costs the one that finds it isn't there.
    assert!(scripts_run(&mut scene).await - before <= 2);
    assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "one wake, which the worker that takes it passes on");
    let before = scripts_run(&mut scene).await;
    assert_eq!(scene.claimer().claim(100).await.unwrap().jobs.len(), 100);
    assert!(scripts_run(&mut scene).await - before <= 2);
}

/// How many scripts clients have called.
async fn scripts_run(scene: &mut Scene) -> u64 {
    let info = scene.command("INFO commandstats").await;
    let calls = |line: &str| {
        let calls = line.strip_prefix("cmdstat_eval:calls=").or(line.strip_prefix("cmdstat_evalsha:calls="))?;
        calls.split(',').next()?.parse::<u64>().ok()
    };
    info.text().lines().filter_map(calls).sum()
}

#[tokio::test]
async fn fault_6_a_claim_takes_no_more_than_a_thousand_under_one_lease() {
    let mut scene = scene("fault").await;
    let name = scene.queue.name().to_string();
    let jobs: Vec<_> = (0..1_001).map(|n| Draft::of(Work { n }).queue(&name)).collect();
    scene.client.enqueue_many(jobs).await.unwrap();
    let batch = scene.claimer().claim(usize::MAX).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (1_000, true));
}

#[tokio::test]
async fn fault_7_a_claim_slips_through_a_pause() {
    let mut scene = scene("fault").await;
    for _ in 0..20 {
        scene.enqueue().await;
    }
    // The pause is read where the jobs are taken: whatever is claimed after it is nothing.
    let mut claimer = scene.claimer();
    let claims = tokio::spawn(async move {
        let mut claimed = 0;
        loop {
            match claimer.claim(1).await.unwrap().jobs.len() {
                0 => return claimed,
                taken => claimed += taken,
            }
        }
    });
    scene.command("HSET @meta paused 1").await;
    let left = scene.command("ZCARD @pending").await.int();
    let claimed = claims.await.unwrap();
    assert_eq!(claimed as i64 + left, 20);
    assert_eq!(scene.command("ZCARD @pending").await.int(), left, "not one was taken after the pause");
}

#[tokio::test]
async fn fault_8_two_producers_with_one_node_number_lose_jobs() {
    // A number of one's own is leased from the server.
    let server = support::server().await;
    let mut raw = support::Raw::connect(server).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(Client::connect(server.url()).await.unwrap());
    }
    let holders = raw.line("KEYS {emq}:node:*").await;
    let numbers: std::collections::BTreeSet<_> = holders.items().iter().map(support::Reply::text).collect();
    assert!(numbers.len() >= clients.len(), "{numbers:?}");
    for client in &clients {
        client.close().await;
    }
}

#[tokio::test]
async fn fault_9_what_cannot_be_understood_is_an_error_and_not_fine() {
    let mut scene = scene("fault").await;
    let lease = scene.claimed().await;
    // A queue whose pause can't be read isn't taken for one that isn't paused.
    scene.command("DEL @meta").await;
    scene.command("SET @meta garbage").await;
    let mut claimer = scene.claimer();
    assert!(scene.unchanged(claimer.claim(1)).await.is_err());
    let queue = scene.queue.clone();
    assert!(scene.unchanged(queue.counts()).await.is_err());
    // A job whose row can't be read isn't settled.
    scene.command(&format!("DEL @job:{}", lease.id())).await;
    scene.command(&format!("SET @job:{} garbage", lease.id())).await;
    assert_eq!(scene.unchanged(queue.complete(&lease, Completion::empty())).await.unwrap(), Settled::Gone);
    assert_eq!(scene.unchanged(queue.retry(&lease, Duration::ZERO, "no")).await.unwrap(), Settled::Gone);
}
