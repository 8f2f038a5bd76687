use std::time::Duration;

use emq::Client;
use support::{Raw, Server};

use crate::jobs::{Count, Counter, start};

/// A primary with replicas, and a sentinel that watches them.
pub(crate) struct Watched {
    pub(crate) primary: Server,
    pub(crate) replicas: Vec<Server>,
    pub(crate) sentinel: Server,
}

impl Watched {
    pub(crate) async fn with(replicas: usize) -> Self {
        let primary = Server::start().await;
        let mut started = Vec::new();
        for _ in 0..replicas {
            started.push(Server::builder().replica_of(&primary).start().await);
        }
        let sentinel = Server::builder()
            .arg("--sentinel")
            .config("sentinel monitor", &format!("main 127.0.0.1 {} 1", primary.port()))
            .config("sentinel down-after-milliseconds", "main 1000")
            .config("sentinel failover-timeout", "main 5000")
            .start()
            .await;
        let mut ask = Raw::connect(&sentinel).await;
        for replica in &started {
            let mut raw = Raw::connect(replica).await;
            until(&mut raw, &["INFO", "replication"], |info| info.contains("master_link_status:up")).await;
            let port = replica.port().to_string();
            until(&mut ask, &["SENTINEL", "REPLICAS", "main"], |replicas| replicas.contains(&port)).await;
        }
        Self { primary, replicas: started, sentinel }
    }

    /// The address under which clients find the primary.
    pub(crate) fn url(&self) -> String {
        format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=main", self.sentinel.port())
    }
}

async fn until(raw: &mut Raw, command: &[&str], done: impl Fn(&str) -> bool) {
    // Neither replication nor Sentinel announces that it is ready: it has to be asked.
    while !done(&raw.command(command).await.to_string()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_follows_a_failover_of_sentinel_by_itself() {
    let watched = Watched::with(1).await;
    let client = Client::builder(watched.url())
        .command_timeout(Duration::from_secs(1))
        .retry_for(Duration::from_secs(30))
        .connect()
        .await
        .unwrap();
    let counter = Counter::default();
    let queue = support::queue_name("failover");
    let worker = start(&client, &counter, std::slice::from_ref(&queue));
    let queue = client.queue(&queue).unwrap();
    queue.enqueue(Count { n: 1 }).await.unwrap();
    counter.reaches(1).await;

    watched.primary.kill().await;
    queue.enqueue(Count { n: 1 }).await.unwrap();
    counter.reaches(2).await;
    worker.shutdown();
    let role = Raw::connect(&watched.replicas[0]).await.command(&["ROLE"]).await.to_string();
    assert!(role.contains("master"), "{role}");
}
