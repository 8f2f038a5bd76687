//! A peer that knows only the fixed part of the wire: what it writes is honoured, and what it needs is there.

use emq::{Claimed, Completion};
use support::Reply;

use crate::scene::{Scene, scene};

impl Scene {
    /// What a peer writes to enqueue a job into a lane.
    async fn peer_enqueues(&mut self, lane: &str, number: u32) -> String {
        let id = format!("JOB000000000{number:02}");
        let row = format!("HSET @job:{id} state pending attempts 0 payload {{}} group {lane}");
        self.command(&row).await;
        self.command(&format!("ZADD @g:{lane}:pending 0 {id}")).await;
        if self.command(&format!("LPOS @ring {lane}")).await == Reply::Nil {
            self.command(&format!("RPUSH @ring {lane}")).await;
            self.command("RPUSH @wake 1").await;
        }
        id
    }

    /// What a peer writes to claim the first job of a lane.
    async fn peer_claims(&mut self, lane: &str) -> String {
        let popped = self.command(&format!("ZPOPMIN @g:{lane}:pending")).await;
        let id = popped.items()[0].text().to_owned();
        self.command(&format!("HINCRBY @job:{id} attempts 1")).await;
        self.command(&format!("HSET @job:{id} state active")).await;
        self.command(&format!("ZADD @active 99999999999999 {id}")).await;
        self.command(&format!("HINCRBY @gactive {lane} 1")).await;
        id
    }

    async fn groups(&mut self, max: usize) -> (String, Vec<Claimed>) {
        let jobs = self.claimer().claim(max).await.unwrap().jobs;
        (jobs.iter().map(|job| job.group.as_deref().unwrap_or("-")).collect(), jobs)
    }
}

#[tokio::test]
async fn its_jobs_are_claimed_in_turn_and_their_slots_come_free() {
    let mut scene = scene("peer").await;
    for (n, lane) in ["a", "a", "b"].iter().enumerate() {
        scene.peer_enqueues(lane, n as u32).await;
    }
    let (order, jobs) = scene.groups(10).await;
    assert_eq!(order, "aba");
    for job in &jobs {
        assert!(scene.queue.complete(&job.lease, Completion::empty()).await.unwrap().is_settled());
    }
    assert_eq!(scene.command("EXISTS @ring @gactive @slots @lanes").await.int(), 0);
    assert_eq!(scene.queue.counts().await.unwrap().pending, 0);
}

#[tokio::test]
async fn its_limits_and_weights_bind_us() {
    let mut scene = scene("peer").await;
    scene.command("HSET @glimit a 2").await;
    scene.command("HSET @gweight b 3").await;
    for n in 0..5 {
        scene.peer_enqueues("a", n).await;
        scene.peer_enqueues("b", 10 + n).await;
    }
    scene.peer_claims("a").await;
    let (order, jobs) = scene.groups(10).await;
    assert_eq!(order, "abbbbb");
    scene.queue.complete(&jobs[0].lease, Completion::empty()).await.unwrap();
    assert_eq!(scene.groups(10).await.0, "a", "the slot of ours came free, and that of the peer didn't");
    scene.command("HSET @meta concurrency 7").await;
    assert_eq!(scene.groups(10).await.0, "");
}

#[tokio::test]
async fn its_pauses_bind_us_and_its_resumes_let_us_go_on() {
    let mut scene = scene("peer").await;
    scene.peer_enqueues("a", 0).await;
    scene.peer_enqueues("b", 1).await;
    // Left in the ring: whoever comes by has to look.
    scene.command("SADD @paused a").await;
    assert_eq!(scene.groups(10).await.0, "b");
    scene.command("SREM @paused a").await;
    scene.command("RPUSH @ring a").await;
    scene.command("HSET @meta paused 1").await;
    assert_eq!(scene.groups(10).await.0, "");
    scene.command("HDEL @meta paused").await;
    assert_eq!(scene.groups(10).await.0, "a");
}

#[tokio::test]
async fn a_job_that_it_claimed_and_died_under_comes_back_and_frees_its_slot() {
    let mut scene = scene("peer").await;
    scene.command("HSET @glimit a 1").await;
    scene.peer_enqueues("a", 0).await;
    scene.peer_enqueues("a", 1).await;
    let id = scene.peer_claims("a").await;
    assert_eq!(scene.groups(10).await.0, "");
    scene.expire(id.parse().unwrap()).await;
    assert_eq!(scene.queue.reap(None).await.unwrap().recovered.len(), 1);
    assert_eq!(scene.groups(10).await.0, "a");
}

#[tokio::test]
async fn a_job_in_a_lane_that_its_row_doesnt_name_is_of_that_lane() {
    let mut scene = scene("peer").await;
    let id = scene.peer_enqueues("a", 0).await;
    scene.command(&format!("HDEL @job:{id} group")).await;
    let (order, jobs) = scene.groups(10).await;
    assert_eq!(order, "a");
    scene.queue.release(&jobs[0].lease).await.unwrap();
    assert_eq!(scene.command("EXISTS @gactive @slots").await.int(), 0, "its slot came free");
    assert_eq!(scene.groups(10).await.0, "a");
}

#[tokio::test]
async fn a_lane_that_it_left_in_the_ring_empty_or_twice_ends_no_claim() {
    let mut scene = scene("peer").await;
    scene.command("RPUSH @ring empty").await;
    for (n, lane) in ["a", "b", "a", "b"].iter().enumerate() {
        scene.peer_enqueues(lane, n as u32).await;
    }
    scene.command("RPUSH @ring a").await;
    // As many lanes are looked at as jobs are asked for.
    assert_eq!(scene.groups(3).await.0, "ab");
    assert_eq!(scene.groups(10).await.0, "ab");
    assert_eq!(scene.command("LLEN @ring").await.int(), 0);
}

#[tokio::test]
async fn what_it_waits_on_is_told_of_each_lane_that_enters_the_ring_and_stays_short() {
    let mut scene = scene("peer").await;
    for n in 0..100 {
        scene.enqueue_as(emq::Draft::of(crate::scene::Work { n }).group(format!("l{n}"))).await;
    }
    assert_eq!(scene.command("LLEN @wake").await.int(), 64);
    assert_eq!(scene.command("LRANGE @wake 0 0").await.items()[0].text(), "1");
}

#[tokio::test]
async fn a_limit_that_it_raised_or_took_away_counts_with_the_beat_also_if_it_left_the_lane_out_of_the_ring() {
    for words in ["HSET @glimit a 3", "HDEL @glimit a"] {
        let mut scene = scene("peer").await;
        scene.command("HSET @glimit a 1").await;
        for n in 0..3 {
            scene.enqueue_as(emq::Draft::of(crate::scene::Work { n }).group("a")).await;
        }
        assert_eq!(scene.groups(10).await.0, "a");
        scene.command(words).await;
        assert_eq!(scene.groups(10).await.0, "", "nobody has said that it can be served");
        scene.command("DEL @marker").await;
        scene.queue.trim(emq::Keep::default()).await.unwrap();
        assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "{words}");
        assert_eq!(scene.groups(10).await.0, "aa", "{words}");
    }
}

#[tokio::test]
async fn what_it_settles_and_takes_away_leaves_nothing_that_the_beat_doesnt_put_right() {
    let mut scene = scene("peer").await;
    for n in 0..2 {
        scene.enqueue_as(emq::Draft::of(crate::scene::Work { n }).group("a")).await;
    }
    let lease = scene.claimer().claim(1).await.unwrap().jobs[0].lease;
    // It completes what was claimed here, and claims and completes the other one itself.
    let theirs = scene.peer_claims("a").await;
    for id in [lease.id().to_string(), theirs] {
        scene.command(&format!("ZREM @active {id}")).await;
        scene.command(&format!("DEL @job:{id}")).await;
        scene.command("HINCRBY @gactive a -1").await;
    }
    scene.command("DEL @gactive @ring").await;
    assert_eq!((scene.command("HLEN @slots").await.int(), scene.queue.counts().await.unwrap().pending), (1, 1));
    scene.queue.trim(emq::Keep::default()).await.unwrap();
    assert_eq!(scene.command("EXISTS @slots @lanes").await.int(), 0);
    assert_eq!(scene.queue.counts().await.unwrap().pending, 0);
}

#[tokio::test]
async fn the_beat_leaves_alone_what_is_right() {
    let mut scene = scene("peer").await;
    for (n, lane) in ["full", "full", "paused", "held", "ready", "ready"].into_iter().enumerate() {
        scene.enqueue_as(emq::Draft::of(crate::scene::Work { n: n as u32 }).group(lane)).await;
    }
    for lane in ["full", "paused", "held", "ready"] {
        scene.queue.lane(lane).unwrap().set_concurrency(1).await.unwrap();
    }
    let jobs = scene.groups(3).await.1;
    scene.queue.hold(&jobs[2].lease, crate::scene::MINUTE).await.unwrap();
    scene.queue.release(&jobs[1].lease).await.unwrap();
    scene.queue.lane("paused").unwrap().pause().await.unwrap();
    scene.command("ZADD @marker 0 0").await;
    for _ in 0..5 {
        let queue = scene.queue.clone();
        scene.unchanged(queue.trim(emq::Keep::default())).await.unwrap();
    }
}
