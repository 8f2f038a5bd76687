//! A server that goes away and comes back, and a network that cuts: the worker goes on by itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use emq::{Completion, JobContext};
use support::{
    Proxy, Server,
    proxy::{When, any, named},
};

use crate::errand::{Brief, Does, Errand, Place, is_done, ms, start, telling, tells};

/// How often each job ran.
type Runs = Arc<Mutex<HashMap<u64, u64>>>;

fn counting(runs: &Runs, time: Duration) -> Does {
    let runs = Arc::clone(runs);
    Does::new(move |n, _| {
        *runs.lock().unwrap().entry(n).or_default() += 1;
        async move {
            tokio::time::sleep(time).await;
            Ok(Completion::empty())
        }
    })
}

#[tokio::test]
async fn a_server_that_keeps_its_data_and_is_restarted_under_load_loses_no_job_and_doubles_none() {
    let server = Server::builder().append_only(true).config("appendfsync", "always").start().await;
    let place = Place::on(&server, "restart").await;
    let runs = Runs::default();
    place.enqueue(3_000).await;
    let worker = start(place.worker(counting(&runs, ms(10))).concurrency(20).lease(ms(20_000)));
    for _ in 0..4 {
        let done = place.queue.counts().await.unwrap().completed;
        place.completed((done + 200).min(2_900)).await;
        server.restart().await;
    }
    place.completed(3_000).await;
    let stats = worker.stop().await;
    assert!(stats.reconnects > 0);
    assert_eq!((stats.completed, stats.lost, stats.stale, stats.unsettled), (3_000, 0, 0, 0));
    let runs = runs.lock().unwrap();
    assert_eq!(runs.len(), 3_000);
    assert!(runs.values().all(|count| *count == 1), "{:?}", runs.iter().find(|(_, count)| **count > 1));
}

#[tokio::test]
async fn a_server_that_comes_back_empty_is_worked_for_by_the_same_worker() {
    let server = Server::start().await;
    let place = Place::on(&server, "empty").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(200)));
    for round in 0..3 {
        place.errand(round).await.unwrap();
        assert_eq!(told.next().await, round);
        // Idle, in the blocking call.
        server.kill().await;
        server.restart().await;
    }
    place.errand(100).await.unwrap();
    assert_eq!(told.next().await, 100);
    worker.stop().await;
}

#[tokio::test]
async fn a_server_that_is_emptied_under_jobs_in_hand_makes_them_gone_and_the_worker_goes_on() {
    let server = Server::start().await;
    let place = Place::on(&server, "emptied").await;
    let (tell, mut told) = telling();
    let (go, may_go) = tokio::sync::watch::channel(false);
    let does = Does::new(move |n, _| {
        tell.tell(n);
        let mut may_go = may_go.clone();
        async move {
            // Jobs below 10 end when they may, those below 20 never, and all others at once.
            match n {
                0..10 => drop(may_go.wait_for(|go| *go).await),
                10..20 => std::future::pending().await,
                _ => {}
            }
            Ok(Completion::empty())
        }
    });
    let worker = start(place.worker(does).lease(ms(20_000)).beat(ms(200)));
    for n in [0, 1, 2] {
        place.errand(n).await.unwrap();
    }
    for n in [10, 11] {
        place.queue.enqueue(Brief { n }).await.unwrap();
    }
    for _ in 0..5 {
        told.next().await;
    }
    place.raw().await.line("FLUSHALL").await;
    // What hangs is let go when its lease can't be renewed, and what ends isn't written.
    place.until(async || worker.stats().lost == 2).await;
    go.send_replace(true);
    place.until(async || worker.stats().stale == 3).await;
    place.errand(20).await.unwrap();
    assert_eq!(told.next().await, 20);
    place.completed(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.stale, stats.unsettled, stats.in_hand), (1, 2, 3, 0, 0));
    assert!(told.rest().is_empty());
}

#[tokio::test]
async fn scripts_that_the_server_forgets_are_sent_again() {
    let server = Server::start().await;
    let place = Place::on(&server, "flush").await;
    let worker = start(place.worker(is_done()).concurrency(4));
    place.enqueue(300).await;
    let mut raw = place.raw().await;
    while place.queue.counts().await.unwrap().completed < 300 {
        raw.command(&["SCRIPT", "FLUSH"]).await;
    }
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.unsettled), (300, 0, 0));
}

#[tokio::test]
async fn a_network_that_cuts_every_seventh_reply_after_execution_loses_no_job_and_doubles_none() {
    const JOBS: u64 = 2_000;
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "seventh").await;
    let near = emq::Client::connect(server.url()).await.unwrap();
    let drafts = (0..JOBS).map(|n| emq::Draft::of(Errand { n }).queue(place.name()));
    near.enqueue_many(drafts).await.unwrap();
    proxy.cut_reply(named("EVALSHA"), When::Every(7));
    let runs = Runs::default();
    let worker = start(place.worker(counting(&runs, ms(2))).concurrency(8).lease(ms(20_000)));
    let queue = near.queue(place.name()).unwrap();
    place.until(async || queue.counts().await.unwrap().completed == JOBS).await;
    proxy.clear();
    let stats = worker.stop().await;
    assert!(proxy.cuts() > 20, "{} cuts", proxy.cuts());
    assert_eq!((stats.completed, stats.lost, stats.stale, stats.unsettled), (JOBS, 0, 0, 0));
    let runs = runs.lock().unwrap().clone();
    assert!(runs.len() == JOBS as usize && runs.values().all(|count| *count == 1), "{runs:?}");
    let counts = queue.counts().await.unwrap();
    assert_eq!(counts.unfinished() + counts.dead, 0);
}

#[tokio::test]
async fn a_network_that_cuts_everything_now_and_then_stops_nothing_for_good() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "severed").await;
    let near = emq::Client::connect(server.url()).await.unwrap();
    let queue = near.queue(place.name()).unwrap();
    proxy.cut_request(any(), When::Every(29));
    let worker = start(place.worker(is_done()).concurrency(8).beat(ms(200)));
    for n in 0..10 {
        let drafts = (0..10).map(|m| emq::Draft::of(Errand { n: n * 10 + m }).queue(place.name()));
        near.enqueue_many(drafts).await.unwrap();
        proxy.sever();
        place.until(async || queue.counts().await.unwrap().completed == (n + 1) * 10).await;
    }
    proxy.clear();
    worker.stop().await;
}

#[tokio::test]
async fn a_lease_outlasts_a_network_that_holds_everything_back_for_less_than_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "held").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.fence()));
        async {
            tokio::time::sleep(ms(3_000)).await;
            Ok(Completion::empty())
        }
    });
    let worker = start(place.worker(does).lease(ms(5_000)));
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, (7, 1));
    proxy.hold();
    tokio::time::sleep(ms(1_500)).await;
    proxy.heal();
    place.completed(1).await;
    assert_eq!(worker.stop().await.lost, 0);
    assert!(told.rest().is_empty());
}
