//! The claim that stands with the server while a worker is idle: quick, and no way to lose a job.

use std::time::Instant;

use emq::{Client, Completion, JobContext};
use support::{Proxy, Server, proxy::When};

use crate::errand::{Does, Errand, Place, hangs, is_claim, is_done, ms, start, telling, tells};

/// The queue, by a connection that no proxy disturbs.
async fn near(server: &Server, place: &Place) -> emq::Queue {
    Client::connect(server.url()).await.unwrap().queue(place.name()).unwrap()
}

#[tokio::test]
async fn a_job_comes_to_an_idle_worker_without_a_further_question() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "handed").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).concurrency(1).beat(ms(60_000)).grace(ms(0)));
    place.waited_for(1).await;
    // Whatever else it asked for would be cut off.
    proxy.cut_request(is_claim, When::Every(1));
    near(&server, &place).await.enqueue(Errand { n: 7 }).await.unwrap();
    assert_eq!(told.next().await, 7);
    assert_eq!(proxy.cuts(), 0);
    proxy.clear();
    worker.stop().await;
}

#[tokio::test]
async fn what_the_server_hands_out_in_the_moment_of_the_stop_is_given_back() {
    let server = Server::start().await;
    // The answer arrives before the worker gives it up, or after.
    for pause in [ms(500), ms(1_300)] {
        let proxy = Proxy::start(server.port());
        let place = Place::through(&server, &proxy.url(), "underway").await;
        let near = near(&server, &place).await;
        let worker = start(place.worker(is_done()).lease(ms(60_000)).beat(ms(60_000)));
        place.waited_for(1).await;
        proxy.hold();
        near.enqueue(Errand { n: 0 }).await.unwrap();
        place.until(async || near.counts().await.unwrap().active == 1).await;
        worker.handle.shutdown();
        tokio::time::sleep(pause).await;
        proxy.heal();
        let stats = worker.end().await;
        let counts = near.counts().await.unwrap();
        assert_eq!((counts.active, counts.pending), (0, 1), "held for {pause:?}: {stats:?}");
        assert_eq!((stats.claimed, stats.released), (1, 1));
    }
}

#[tokio::test]
async fn a_job_that_was_lost_on_its_way_is_handed_over_again() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "lost").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.fence()));
        std::future::ready(Ok(Completion::empty()))
    });
    // Both the claims that stand and those that ask for what they have taken.
    proxy.cut_reply(is_claim, When::Every(2));
    let worker = start(place.worker(does).concurrency(1).beat(ms(60_000)));
    let near = near(&server, &place).await;
    for n in 0..5 {
        place.waited_for(1).await;
        near.enqueue(Errand { n }).await.unwrap();
        assert_eq!(told.next().await, (n, 1), "in its first claim");
        place.until(async || near.counts().await.unwrap().unfinished() == 0).await;
    }
    assert!(proxy.cuts() >= 2, "{}", proxy.cuts());
    proxy.clear();
    worker.stop().await;
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_script_costs_no_time() {
    let server = Server::start().await;
    let place = Place::on(&server, "flushed").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    let mut raw = place.raw().await;
    for n in 0..3 {
        place.waited_for(1).await;
        raw.command(&["SCRIPT", "FLUSH"]).await;
        let enqueued = Instant::now();
        place.errand(n).await.unwrap();
        assert_eq!(told.next().await, n);
        // Long before it would look by itself.
        assert!(enqueued.elapsed() < ms(4_000), "{:?}", enqueued.elapsed());
        place.completed(n + 1).await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_may_not_wait_works_all_the_same() {
    let server = Server::start().await;
    let place = Place::on(&server, "refused").await;
    place.raw().await.command(&["ACL", "SETUSER", "default", "-bzpopmin"]).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    for n in 0..3 {
        place.errand(n).await.unwrap();
        assert_eq!(told.next().await, n);
    }
    place.completed(3).await;
    let stats = worker.stop().await;
    assert_eq!((stats.claimed, stats.completed), (3, 3), "each once");
}

#[tokio::test]
async fn a_worker_that_vanishes_while_it_waits_is_handed_few_jobs() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "vanished").await;
    let worker = start(place.worker(is_done()).concurrency(1_000).beat(ms(60_000)).grace(ms(0)));
    place.waited_for(1).await;
    proxy.black_hole();
    let near = near(&server, &place).await;
    near.enqueue_many((0..100).map(|n| Errand { n })).await.unwrap();
    // What was asked for behind the wait, and no more.
    place.until(async || near.counts().await.unwrap().active > 0).await;
    let counts = near.counts().await.unwrap();
    assert_eq!((counts.active, counts.pending), (16, 84));
    worker.drop_run().await;
}

#[tokio::test]
async fn what_the_beat_finds_is_claimed_at_once_though_no_marker_tells_of_it() {
    let server = Server::start().await;
    let place = Place::on(&server, "unmarked").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    place.waited_for(1).await;
    let enqueued = Instant::now();
    place.errand(7).delay(ms(1_500)).await.unwrap();
    // Woken by this, it knows when the job is due, and waits again.
    let marker = place.key("marker");
    place.until(async || place.raw().await.command(&["EXISTS", &marker]).await.to_string() == "0").await;
    place.waited_for(1).await;
    // From now on none can be set.
    place.raw().await.command(&["SET", &marker, "of another type"]).await;
    assert_eq!(told.next().await, 7);
    // Long before it would look by itself.
    assert!(enqueued.elapsed() < ms(4_500), "{:?}", enqueued.elapsed());
    place.raw().await.command(&["DEL", &marker]).await;
    worker.stop().await;
}
