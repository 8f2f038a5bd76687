//! Node numbers: two clients never mint the same id.

use std::collections::BTreeSet;
use std::time::Duration;

use emq::{Client, JobId};
use support::{Raw, Reply, Server, child, event, in_role};

use crate::common::{Work, eventually};

/// Takes all 1 024 numbers in the name of somebody else.
pub(crate) async fn take_all(server: &Server) {
    let script = "for n = 0, 1023 do redis.call('SET', '{emq}:node:' .. n, 'other') end return 1";
    Raw::connect(server).await.command(&["EVAL", script, "0"]).await.int();
}

async fn taken(raw: &mut Raw) -> BTreeSet<u64> {
    let keys = raw.line("KEYS {emq}:node:*").await;
    keys.items().iter().map(|key| key.text().rsplit(':').next().unwrap().parse().unwrap()).collect()
}

fn node(id: JobId) -> u64 {
    id.number() >> 12 & 0x3ff
}

#[tokio::test]
async fn producer_main() {
    if !in_role("nodes::producer_main") {
        return;
    }
    let client = Client::connect(std::env::var("EMQ_URL").unwrap()).await.unwrap();
    let queue = std::env::var("EMQ_TEST_QUEUE").unwrap();
    event("ready");
    for _ in 0..5 {
        let jobs = (0..500).map(|n| emq::Draft::of(Work { n }).queue(&queue));
        let tickets = client.enqueue_many(jobs.collect::<Vec<_>>()).await.unwrap();
        assert!(tickets.iter().all(|ticket| !ticket.is_duplicate()));
        event(&format!("node {}", node(tickets[0].id())));
    }
    event("done");
    // It holds its number until it is killed.
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn unconfigured_processes_mint_at_the_same_time_without_a_collision() {
    for crowded in [false, true] {
        let server = Server::start().await;
        if crowded {
            take_all(&server).await;
        }
        let url = server.url();
        let envs = [("EMQ_URL", url.as_str()), ("EMQ_TEST_QUEUE", "q")];
        let mut producers: Vec<_> = (0..3).map(|_| child("nodes::producer_main", &envs)).collect();
        let mut nodes = BTreeSet::new();
        for producer in &mut producers {
            nodes.insert(producer.wait_line("node ").await);
            producer.wait_line("done").await;
        }
        let mut raw = Raw::connect(&server).await;
        assert_eq!(raw.line("ZCARD emq:{q}:pending").await.int(), 3 * 5 * 500, "crowded: {crowded}");
        let first = raw.line("ZRANGE emq:{q}:pending 0 0").await;
        let first = first.items()[0].text();
        let nonce = raw.line(&format!("HGET emq:{{q}}:job:{first} nonce")).await;
        if crowded {
            assert_eq!(nonce.bytes().len(), 16, "the nonce tells whose it is");
        } else {
            assert_eq!(nodes.len(), 3, "each has a number of its own: {nodes:?}");
            assert_eq!(nonce, Reply::Nil, "a plain job stays small");
        }
    }
}

#[tokio::test]
async fn the_last_free_number_is_found_and_given_back() {
    let server = Server::start().await;
    take_all(&server).await;
    let mut raw = Raw::connect(&server).await;
    for free in [0, 613, 1023] {
        let key = format!("{{emq}}:node:{free}");
        raw.line(&format!("DEL {key}")).await;
        let client = Client::connect(server.url()).await.unwrap();
        let id = client.queue("q").unwrap().enqueue(Work::default()).await.unwrap().id();
        assert_eq!(node(id), free);
        let ttl = raw.line(&format!("PTTL {key}")).await.int();
        assert!((50_000..=60_000).contains(&ttl), "{ttl}");
        client.close().await;
        assert_eq!(raw.line(&format!("EXISTS {key}")).await.int(), 0);
        raw.line(&format!("SET {key} other")).await;
    }
}

#[tokio::test]
async fn a_number_that_somebody_else_has_by_now_is_not_given_back() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    let client = Client::connect(server.url()).await.unwrap();
    let number = *taken(&mut raw).await.first().unwrap();
    raw.line(&format!("SET {{emq}}:node:{number} other")).await;
    client.close().await;
    assert_eq!(raw.line(&format!("GET {{emq}}:node:{number}")).await.text(), "other");
}

#[tokio::test]
async fn a_number_is_renewed_for_as_long_as_the_client_lives() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    let ttl = Duration::from_secs(3);
    let client = Client::builder(server.url()).node_ttl(ttl).connect().await.unwrap();
    let number = *taken(&mut raw).await.first().unwrap();
    let key = format!("{{emq}}:node:{number}");
    // Each renewal makes the time that is left longer than it was.
    for _ in 0..3 {
        let mut left = i64::MAX;
        eventually("it is renewed", async || {
            let before = std::mem::replace(&mut left, raw.line(&format!("PTTL {key}")).await.int());
            left > before
        })
        .await;
    }
    drop(client);
    eventually("it runs out", async || raw.line(&format!("EXISTS {key}")).await.int() == 0).await;
}

#[tokio::test]
async fn a_number_that_the_server_has_lost_is_leased_anew() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    let client = Client::builder(server.url()).node_ttl(Duration::from_secs(3)).connect().await.unwrap();
    raw.line("FLUSHALL").await;
    eventually("a number is leased", async || taken(&mut raw).await.len() == 1).await;
    let id = client.queue("q").unwrap().enqueue(Work::default()).await.unwrap().id();
    assert!(taken(&mut raw).await.contains(&node(id)));
    client.close().await;
    assert!(taken(&mut raw).await.is_empty());
}

#[tokio::test]
async fn while_a_number_is_not_surely_its_own_a_client_writes_a_nonce() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    let client = Client::builder(server.url()).node_ttl(Duration::from_millis(90)).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    // Somebody else takes whatever number it has, again and again.
    take_all(&server).await;
    eventually("a job has a nonce", async || {
        let id = queue.enqueue(Work::default()).await.unwrap().id();
        raw.line(&format!("HEXISTS emq:{{q}}:job:{id} nonce")).await.int() == 1
    })
    .await;
    raw.line("DEL {emq}:node:7").await;
    eventually("the free number is found", async || {
        let id = queue.enqueue(Work::default()).await.unwrap().id();
        node(id) == 7 && raw.line(&format!("HEXISTS emq:{{q}}:job:{id} nonce")).await.int() == 0
    })
    .await;
}
