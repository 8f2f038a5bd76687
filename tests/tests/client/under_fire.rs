//! Longer runs through a line that keeps breaking: as many jobs as were enqueued, and each completed once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emq::{Client, Completion, Draft, JobId, Queue};
use futures_util::future::join_all;
use support::proxy::{When, named};
use support::{Proxy, Raw, Server};
use tokio::task::JoinSet;

use crate::common::{Work, patient};

const JOBS: u32 = 600;

/// Enqueues from three tasks while three others claim and complete, and checks the sums.
async fn run(url: &str, around: &Queue) {
    // The first connection is tried once, and may be struck as well.
    let mut tries = 0..100;
    let client = loop {
        match patient(url).connect().await {
            Ok(client) => break client,
            Err(error) => assert!(tries.next().is_some(), "{error}"),
        }
    };
    let name = around.name().to_string();
    let mut producers = JoinSet::new();
    for part in 0..3 {
        let (client, name) = (client.clone(), name.clone());
        producers.spawn(async move {
            let mut ids = Vec::new();
            for n in 0..JOBS / 3 / 10 {
                let jobs = (0..10).map(|each| Draft::of(Work { n: part * JOBS + n * 10 + each }).queue(&name));
                let tickets = client.enqueue_many(jobs.collect::<Vec<_>>()).await.unwrap();
                assert!(tickets.iter().all(|ticket| !ticket.is_duplicate()));
                ids.extend(tickets.iter().map(emq::Ticket::id));
            }
            ids
        });
    }
    let mut workers = JoinSet::new();
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let (queue, over) = (client.queue(&name).unwrap(), Arc::clone(&over));
        workers.spawn(async move {
            let mut claimer = queue.claimer("w");
            let mut done = Vec::new();
            loop {
                // Read before the claim: what is enqueued by then is found by it.
                let last = over.load(Ordering::SeqCst);
                let batch = claimer.claim(8).await.unwrap();
                if batch.jobs.is_empty() && last {
                    return done;
                }
                for job in &batch.jobs {
                    assert_eq!(job.lease.token(), 1, "no claim was lost, and none made twice");
                    assert!(queue.complete(&job.lease, Completion::empty()).await.unwrap().is_settled());
                    done.push(job.lease.id());
                }
            }
        });
    }
    let mut enqueued: BTreeSet<JobId> = BTreeSet::new();
    while let Some(ids) = producers.join_next().await {
        enqueued.extend(ids.unwrap());
    }
    over.store(true, Ordering::SeqCst);
    let mut done = Vec::new();
    while let Some(ids) = workers.join_next().await {
        done.extend(ids.unwrap());
    }
    assert_eq!(done.len(), JOBS as usize, "each is completed once");
    assert_eq!(done.into_iter().collect::<BTreeSet<_>>(), enqueued);
    let counts = around.counts().await.unwrap();
    assert_eq!((counts.unfinished(), counts.completed, counts.remembered), (0, u64::from(JOBS), u64::from(JOBS)));
}

async fn queue(server: &Server) -> Queue {
    let client = Client::builder(server.url()).node(2).connect().await.unwrap();
    client.queue(support::queue_name("fire")).unwrap()
}

#[tokio::test]
async fn every_seventh_reply_is_cut() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    proxy.cut_reply(named("EVALSHA"), When::Every(7));
    run(&proxy.url(), &queue(&server).await).await;
    assert!(proxy.cuts() > 50, "{} cuts", proxy.cuts());
}

#[tokio::test]
async fn every_seventh_request_is_cut() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    proxy.cut_request(named("EVALSHA"), When::Every(7));
    run(&proxy.url(), &queue(&server).await).await;
    assert!(proxy.cuts() > 50, "{} cuts", proxy.cuts());
}

/// Sends a command again and again until the run is over.
async fn meanwhile(server: &Server, command: &[&str], run: impl Future<Output = ()>) -> u32 {
    let mut raw = Raw::connect(server).await;
    let mut sent = 0;
    let nuisance = async {
        loop {
            raw.command(command).await;
            sent += 1;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = run => {}
        () = nuisance => {}
    }
    sent
}

#[tokio::test]
async fn the_servers_scripts_are_flushed_all_the_time() {
    let server = Server::start().await;
    let queue = queue(&server).await;
    let url = server.url();
    let sent = meanwhile(&server, &["SCRIPT", "FLUSH"], Box::pin(run(&url, &queue))).await;
    assert!(sent > 5, "{sent}");
}

#[tokio::test]
async fn scripts_are_flushed_under_bulks_and_pipelines() {
    const BULK: u32 = 5_000;
    const SINGLE: u32 = 2_000;
    let server = Server::start().await;
    let queue = queue(&server).await;
    let client = patient(&server.url()).connect().await.unwrap();
    let name = queue.name().to_string();
    let run = async {
        let bulk = client.enqueue_many((0..BULK).map(|n| Draft::of(Work { n }).queue(&name)));
        // All on one connection, without waiting for each other.
        let singles = join_all((0..SINGLE).map(|n| client.enqueue(Work { n }).queue(&name).into_future()));
        let (tickets, singles) = tokio::join!(bulk.into_future(), singles);
        let singles = singles.into_iter().map(Result::unwrap);
        let ids: BTreeSet<JobId> = tickets
            .unwrap()
            .into_iter()
            .chain(singles)
            .filter(|ticket| !ticket.is_duplicate())
            .map(|t| t.id())
            .collect();
        assert_eq!(ids.len(), (BULK + SINGLE) as usize);
    };
    let sent = meanwhile(&server, &["SCRIPT", "FLUSH"], Box::pin(run)).await;
    assert!(sent > 5, "{sent}");
    assert_eq!(queue.counts().await.unwrap().pending, u64::from(BULK + SINGLE));
}

#[tokio::test]
async fn every_client_is_killed_all_the_time() {
    let server = Server::start().await;
    let queue = queue(&server).await;
    let url = server.url();
    let sent = meanwhile(&server, &["CLIENT", "KILL", "TYPE", "normal"], Box::pin(run(&url, &queue))).await;
    assert!(sent > 5, "{sent}");
}
