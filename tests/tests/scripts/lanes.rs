//! Lanes: who is served when, and what a lane that can't be served does.

use std::time::Duration;

use emq::{Claimed, Completion, Draft, JobId, Lease};

use crate::scene::{LEASE, MINUTE, Scene, Work, scene};

impl Scene {
    /// Enqueues jobs into lanes, one for each letter; `-` is the flat line.
    async fn enqueue_lanes(&mut self, letters: &str) -> Vec<JobId> {
        let mut ids = Vec::new();
        for letter in letters.chars() {
            let draft = Draft::of(Work { n: 0 });
            ids.push(self.enqueue_as(if letter == '-' { draft } else { draft.group(letter) }).await);
        }
        ids
    }

    /// Claims up to `max` jobs, and answers of which lanes they are, in order.
    async fn claim_lanes(&mut self, max: usize) -> (String, Vec<Lease>) {
        let jobs = self.claimer().claim(max).await.unwrap().jobs;
        let letters = jobs.iter().map(|job: &Claimed| job.group.clone().unwrap_or("-".into())).collect();
        (letters, jobs.iter().map(|job| job.lease).collect())
    }

    async fn ring(&mut self) -> String {
        self.command("LRANGE @ring 0 -1").await.items().iter().map(|lane| lane.text().to_owned()).collect()
    }
}

#[tokio::test]
async fn lanes_take_turns_and_the_flat_line_is_one_of_them() {
    let mut scene = scene("lanes").await;
    scene.enqueue_lanes("aaaabb--c").await;
    assert_eq!(scene.ring().await, "abc");
    assert_eq!(scene.claim_lanes(9).await.0, "abc-ab-aa");
    assert_eq!(scene.ring().await, "");
}

#[tokio::test]
async fn turns_go_on_from_claim_to_claim() {
    let mut scene = scene("lanes").await;
    scene.enqueue_lanes("aaaabb--c").await;
    let mut order = String::new();
    for _ in 0..9 {
        order += &scene.claim_lanes(1).await.0;
    }
    assert_eq!(order, "abc-ab-aa");
}

#[tokio::test]
async fn a_weight_is_how_many_jobs_a_turn_has_also_across_claims() {
    let mut scene = scene("lanes").await;
    scene.command("HSET @gweight a 3 b 2").await;
    scene.enqueue_lanes("aaaaaaabbbbbb").await;
    let mut order = String::new();
    for max in [1, 1, 4, 2, 5] {
        order += &scene.claim_lanes(max).await.0;
    }
    assert_eq!(order, "aaabbaaabbabb");
}

#[tokio::test]
async fn a_lane_at_its_limit_leaves_the_ring_and_comes_back_with_each_slot_once() {
    let mut scene = scene("lanes").await;
    scene.command("HSET @glimit a 2").await;
    scene.enqueue_lanes("aaaaaaaaab").await;
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!((order.as_str(), scene.ring().await.as_str()), ("aba", ""));

    let queue = scene.queue.clone();
    assert!(queue.complete(&held[0], Completion::empty()).await.unwrap().is_settled());
    assert_eq!(scene.ring().await, "a");
    // The same again frees nothing.
    assert!(queue.complete(&held[0], Completion::empty()).await.unwrap().is_settled());
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a");

    queue.retry(&held[0], MINUTE, "no").await.unwrap();
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a");
    queue.snooze(&held[0], MINUTE).await.unwrap();
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a");
    queue.bury(&held[0], "no").await.unwrap();
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a");
    queue.release(&held[0]).await.unwrap();
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a");
    scene.expire(held[0].id()).await;
    queue.reap(None).await.unwrap();
    // Settled after all by whom the reaper took it from: the slot came free once.
    queue.complete(&held[0], Completion::empty()).await.unwrap();
    assert_eq!(scene.claim_lanes(10).await.0, "a");
    assert_eq!(scene.command("HGET @gactive a").await.text(), "2");
    assert_eq!(scene.command("HLEN @slots").await.int(), 3);
}

#[tokio::test]
async fn the_slot_of_a_job_whose_row_was_lost_comes_free() {
    let mut scene = scene("lanes").await;
    scene.command("HSET @glimit a 1").await;
    let ids = scene.enqueue_lanes("aa").await;
    scene.claim_lanes(1).await;
    scene.command(&format!("DEL @job:{}", ids[0])).await;
    scene.expire(ids[0]).await;
    assert_eq!(scene.queue.reap(None).await.unwrap().dropped, 1);
    assert_eq!(scene.claim_lanes(1).await.0, "a");
}

#[tokio::test]
async fn a_paused_lane_waits_and_the_others_go_on() {
    let mut scene = scene("lanes").await;
    scene.enqueue_lanes("aab").await;
    scene.command("SADD @paused a").await;
    assert_eq!(scene.claim_lanes(10).await.0, "b");
    // Paused by someone who left it in the ring.
    assert_eq!(scene.ring().await, "");
    scene.enqueue_lanes("a").await;
    assert_eq!(scene.ring().await, "");
}

#[tokio::test]
async fn a_rate_holds_a_lane_back_until_its_time_has_come() {
    let mut scene = scene("lanes").await;
    scene.bytes_command(&[b"HSET", b"@grate", b"a", b"2 3600000 2"]).await;
    scene.enqueue_lanes("aaaa-").await;
    let mut claimer = scene.claimer();
    let batch = claimer.claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (3, false));
    let next = batch.next_event.unwrap();
    assert!(next <= LEASE, "a lease runs out before the rate lets the next one start: {next:?}");
    let score: f64 = scene.command("ZSCORE @held a").await.text().parse().unwrap();
    let wait = score - scene.now().await;
    assert!((1_700_000.0..=1_800_001.0).contains(&wait), "{wait}");
    // Its time has come.
    scene.command("ZADD @held 1 a").await;
    scene.bytes_command(&[b"HSET", b"@grate", b"a", b"2 3600000 2 1"]).await;
    scene.queue.promote().await.unwrap();
    assert_eq!(scene.claim_lanes(10).await.0, "aa");
}

#[tokio::test]
async fn a_queues_concurrency_bounds_all_its_claims_and_a_slot_that_comes_free_wakes() {
    let mut scene = scene("lanes").await;
    scene.command("HSET @meta concurrency 2").await;
    scene.enqueue_lanes("a---").await;
    let (order, held) = scene.claim_lanes(10).await;
    assert_eq!(order, "a-");
    scene.command("DEL @marker").await;
    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (0, false));
    scene.queue.complete(&held[0], Completion::empty()).await.unwrap();
    assert_eq!(scene.command("ZCARD @marker").await.int(), 1);
    assert_eq!(scene.claim_lanes(10).await.0, "-");
}

#[tokio::test]
async fn what_has_expired_is_buried_and_never_handed_out() {
    let mut scene = scene("lanes").await;
    let draft = Draft::of(Work { n: 0 }).expires_in(Duration::from_millis(1)).group("a");
    let id = scene.enqueue_as(draft.unique("once")).await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).expires_in(MINUTE).group("a")).await;
    scene.command(&format!("HSET @job:{id} expires 1")).await;
    let batch = scene.claimer().claim(1).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.expired), (1, 1));
    let stored = scene.queue.get(id).await.unwrap().unwrap();
    assert_eq!((stored.state, stored.last_error.as_deref()), (emq::JobState::Dead, Some("expired")));
    assert_eq!(scene.command("EXISTS @de:once").await.int(), 0);
}

#[tokio::test]
async fn ten_thousand_lanes_are_each_served_once_before_any_is_served_again() {
    let server = support::Server::start().await;
    let mut scene = Scene::on(&server, "lanes").await;
    let jobs = (0..20_000).map(|n| Draft::of(Work { n }).group(format!("lane-{}", n % 10_000)));
    let queue = scene.queue.name().as_str().to_owned();
    scene.client.enqueue_many(jobs.map(|job| job.queue(queue.as_str()))).await.unwrap();
    let mut claimer = scene.claimer();
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 10_000 {
        for job in claimer.claim(1_000).await.unwrap().jobs {
            assert!(seen.insert(job.group.unwrap()), "a lane had two turns");
        }
    }
}
