//! What the lanes promise, measured: shares, bounds, and costs that don't grow.
//!
//! Where there are many jobs, the server is the test's own: the others look through all keys of theirs.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use emq::{Completion, Draft, Rate};
use support::Server;

use crate::scene::{Scene, Work, scene};

impl Scene {
    /// Enqueues so many jobs into a lane, `-` for the flat line.
    async fn fill(&self, lane: &str, jobs: u32) {
        let name = self.queue.name().as_str();
        let draft = |n| Draft::of(Work { n }).queue(name);
        let drafts = (0..jobs).map(|n| if lane == "-" { draft(n) } else { draft(n).group(lane) });
        self.client.enqueue_many(drafts).await.unwrap();
    }
}

#[tokio::test]
async fn lanes_with_weights_have_their_shares_of_ten_thousand_jobs_within_two_percent() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "shares").await;
    for (lane, weight) in [("a", 6), ("b", 3), ("c", 1)] {
        scene.queue.lane(lane).unwrap().set_weight(weight).await.unwrap();
        scene.fill(lane, 10_000).await;
    }
    let mut claimers = [scene.claimer(), scene.claimer(), scene.claimer()];
    let (mut shares, mut claimed, mut n) = (BTreeMap::new(), 0, 0);
    // By several workers, in batches of many sizes, so that turns are cut short at all places.
    while claimed < 10_000 {
        let max = (1 + n % 37).min(10_000 - claimed);
        for job in claimers[n % 3].claim(max).await.unwrap().jobs {
            *shares.entry(job.group.unwrap()).or_insert(0) += 1;
            claimed += 1;
        }
        n += 1;
    }
    for (lane, wanted) in [("a", 6_000_i32), ("b", 3_000), ("c", 1_000)] {
        let share: i32 = shares[lane];
        assert!((share - wanted).abs() * 50 <= wanted, "{shares:?}");
    }
}

#[tokio::test]
async fn a_tenant_with_many_jobs_delays_the_first_of_another_by_one_turn_at_most() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "turn").await;
    scene.fill("big", 20_000).await;
    scene.fill("-", 5_000).await;
    let big = scene.queue.lane("big").unwrap();
    let mut claimer = scene.claimer();
    for (n, weight) in [1, 1, 1, 5].into_iter().enumerate() {
        big.set_weight(weight).await.unwrap();
        let mut claim = async || claimer.claim(1).await.unwrap().jobs.remove(0).group;
        for _ in 0..n {
            claim().await;
        }
        let lane = format!("small-{n}");
        scene.fill(&lane, 1).await;
        let mut before = 0;
        while claim().await.as_ref() != Some(&lane) {
            before += 1;
        }
        // A turn of the big lane, and one of the flat line; the big lane's may have begun before.
        assert!(before <= weight + 1, "{before} jobs came before the first of {lane}");
    }
}

#[tokio::test]
async fn the_flat_line_has_its_turn_however_many_lanes_come_and_go() {
    let mut scene = scene("flat").await;
    scene.fill("-", 1_000).await;
    let mut claimer = scene.claimer();
    let (mut flat, mut lanes) = (0, 0);
    for n in 0..150 {
        // More new lanes than are served.
        for lane in 0..2 {
            scene.enqueue_as(Draft::of(Work { n }).group(format!("{n}-{lane}"))).await;
        }
        match claimer.claim(1).await.unwrap().jobs.remove(0).group {
            Some(_) => lanes += 1,
            None => flat += 1,
        }
    }
    // Its turns are as far apart as the ring was long when it had its last: 1, 2, 4, 8 and so on.
    assert!(flat >= 5 && lanes > flat, "{flat} of the flat line and {lanes} of lanes");
}

#[tokio::test]
async fn no_window_has_more_starts_than_its_rate_allows() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "rate").await;
    let (period, burst) = (Duration::from_millis(100), 10);
    scene.queue.set_rate(Rate::per(50, period).burst(burst)).await.unwrap();
    let lane = scene.queue.lane("a").unwrap();
    lane.set_rate(Rate::per(20, period)).await.unwrap();
    scene.fill("a", 1_500).await;
    scene.fill("b", 1_500).await;
    let mut claimers = [scene.claimer(), scene.claimer()];
    let (start, mut groups, mut n) = (Instant::now(), BTreeMap::new(), 0);
    while start.elapsed() < Duration::from_millis(1_500) {
        for job in claimers[n % 2].claim(1 + n % 20).await.unwrap().jobs {
            groups.insert(job.lease.id().to_string(), job.group.unwrap());
        }
        // As the beat of a worker.
        scene.queue.promote().await.unwrap();
        n += 1;
    }
    let took = start.elapsed();
    let leases = scene.command("ZRANGE @active 0 -1 WITHSCORES").await;
    let starts = |lane: Option<&str>| -> Vec<u64> {
        let pairs = leases.items().chunks_exact(2);
        let of_lane = pairs.filter(|pair| lane.is_none_or(|lane| groups[pair[0].text()] == lane));
        // All leases are as long, so their ends are as far apart as the starts.
        of_lane.map(|pair| pair[1].text().parse().unwrap()).collect()
    };
    for (lane, max, burst) in [(None, 50, burst as usize), (Some("a"), 20, 1)] {
        let starts = starts(lane);
        for length in [1, 10, 100, 250, 1_000] {
            let bound = (length as usize * max).div_ceil(100) + burst - 1;
            for (n, from) in starts.iter().enumerate() {
                let window = starts[n..].iter().take_while(|at| **at < from + length).count();
                assert!(window <= bound, "{window} of {lane:?} in {length} ms, and {bound} may");
            }
        }
        // And it is used up.
        let share = starts.len() as f64 / (took.as_millis() as f64 * max as f64 / 100.0);
        assert!(share > 0.2, "{lane:?} had {share} of its rate");
    }
}

#[tokio::test]
async fn limits_are_never_exceeded_and_always_used_whatever_becomes_of_the_jobs() {
    let server = Server::start().await;
    let mut scene = Scene::on(&server, "limits").await;
    scene.queue.set_concurrency(7).await.unwrap();
    for (lane, limit) in [("a", 2), ("b", 3), ("c", 5)] {
        scene.queue.lane(lane).unwrap().set_concurrency(limit).await.unwrap();
        scene.fill(lane, 200).await;
    }
    let queue = scene.queue.clone();
    let (mut claimer, mut held, mut done) = (scene.claimer(), Vec::new(), HashSet::new());
    let mut n = 0;
    while done.len() < 600 {
        held.extend(claimer.claim(10).await.unwrap().jobs);
        let active = scene.command("ZCARD @active").await.int();
        assert!(active <= 7, "{active} are active");
        let (mut counted, mut could_go_on) = (0, false);
        for (lane, limit) in [("a", 2), ("b", 3), ("c", 5)] {
            let state = queue.lane(lane).unwrap().state().await.unwrap();
            assert!(state.active <= limit, "{} of {lane} are active", state.active);
            counted += state.active as i64;
            could_go_on |= state.active < limit && state.waiting > 0;
        }
        assert_eq!(counted, active);
        assert!(active == 7 || !could_go_on, "{active} are active, and more could be");
        let Some(job) = held.pop() else { break };
        n += 1;
        match n % 7 {
            0 => assert!(queue.retry(&job.lease, Duration::ZERO, "no").await.unwrap().is_settled()),
            1 => assert!(queue.release(&job.lease).await.unwrap().is_settled()),
            2 => assert!(queue.snooze(&job.lease, Duration::ZERO).await.unwrap().is_settled()),
            3 => {
                scene.expire(job.lease.id()).await;
                queue.reap(None).await.unwrap();
            }
            _ => {
                assert!(queue.complete(&job.lease, Completion::empty()).await.unwrap().is_settled());
                // And once more.
                queue.complete(&job.lease, Completion::empty()).await.unwrap();
                done.insert(job.lease.id());
            }
        }
        queue.promote().await.unwrap();
    }
    assert_eq!(done.len(), 600);
    assert_eq!(scene.command("EXISTS @gactive @slots @ring @lanes").await.int(), 0);
}

#[tokio::test]
async fn a_claim_and_an_enqueue_cost_the_same_with_ten_lanes_and_with_ten_thousand() {
    let mut costs = Vec::new();
    for lanes in [10_u32, 10_000] {
        let server = Server::start().await;
        let mut scene = Scene::on(&server, "cost").await;
        let name = scene.queue.name().as_str().to_owned();
        let each = |n: u32| Draft::of(Work { n }).group(format!("lane-{}", n % lanes)).queue(name.as_str());
        scene.client.enqueue_many((0..2 * lanes.max(100)).map(each)).await.unwrap();
        let mut claimer = scene.claimer();
        // Both scripts are known to the server by then.
        let first = claimer.claim(10).await.unwrap().jobs;
        let mut cost = Vec::new();
        scene.command("CONFIG RESETSTAT").await;
        claimer.claim(10).await.unwrap();
        cost.push(commands(&mut scene).await);
        scene.enqueue_as(each(3)).await;
        cost.push(commands(&mut scene).await);
        scene.queue.complete(&first[0].lease, Completion::empty()).await.unwrap();
        cost.push(commands(&mut scene).await);
        costs.push(cost);
    }
    // The flat line's turn, and the key that comes or goes with its last member, are a command or two apart.
    let same = costs[0].iter().zip(&costs[1]).all(|(few, many)| few.abs_diff(*many) <= 4);
    assert!(same, "commands of a claim of ten, an enqueue and a completion: {costs:?}");
}

/// How many commands the server has carried out since this was asked last, those of scripts among them.
async fn commands(scene: &mut Scene) -> u64 {
    let stats = scene.command("INFO commandstats").await;
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
    let all = stats.text().lines().filter(|line| !line.contains("config") && !line.contains("info"));
    let sum = all.filter_map(calls).sum();
    scene.command("CONFIG RESETSTAT").await;
    sum
}
