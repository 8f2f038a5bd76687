use emq::{Client, Draft};
use support::{Raw, Server};

use crate::jobs::{Count, Counter, start};

/// Three primaries that share the slots.
async fn cluster() -> Vec<Server> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let node = Server::builder().config("cluster-enabled", "yes").config("cluster-node-timeout", "2000");
        nodes.push(node.start().await);
    }
    let mut first = Raw::connect(&nodes[0]).await;
    for (n, node) in nodes.iter().enumerate() {
        let mut raw = Raw::connect(node).await;
        let (from, to) = (n * 5461, if n == 2 { 16_383 } else { (n + 1) * 5461 - 1 });
        let slots: Vec<String> = (from..=to).map(|slot| slot.to_string()).collect();
        let mut command = vec!["CLUSTER", "ADDSLOTS"];
        command.extend(slots.iter().map(String::as_str));
        assert!(!raw.command(&command).await.is_error());
        first.line(&format!("CLUSTER MEET 127.0.0.1 {}", node.port())).await;
    }
    for node in &nodes {
        let mut raw = Raw::connect(node).await;
        // Nothing announces that a cluster has formed: it has to be asked.
        while !is_formed(&mut raw).await {
            tokio::task::yield_now().await;
        }
    }
    nodes
}

async fn is_formed(raw: &mut Raw) -> bool {
    let info = raw.command(&["CLUSTER", "INFO"]).await.text().to_owned();
    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") && info.contains("cluster_size:3")
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_in_every_slot_of_a_cluster_are_served_by_one_worker() {
    let nodes = cluster().await;
    let url = format!("redis-cluster://127.0.0.1:{}", nodes[0].port());
    let client = Client::connect(url).await.unwrap();
    let queues: Vec<String> = (0..6).map(|n| format!("cluster-{n}")).collect();
    let counter = Counter::default();
    let worker = start(&client, &counter, &queues);
    for queue in &queues {
        let drafts = (0..50).map(|_| Draft::of(Count { n: 1 }).queue(queue.clone()));
        client.enqueue_many(drafts).await.unwrap();
    }
    counter.reaches(300).await;
    worker.shutdown();

    let mut holding = 0;
    for node in &nodes {
        holding += usize::from(Raw::connect(node).await.command(&["DBSIZE"]).await.int() > 0);
    }
    assert_eq!(holding, 3, "the queues lie on all nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_has_moved_is_followed() {
    let nodes = cluster().await;
    let url = format!("redis-cluster://127.0.0.1:{}", nodes[0].port());
    let client = Client::connect(url).await.unwrap();
    let queue = client.queue("moving").unwrap();

    let mut first = Raw::connect(&nodes[0]).await;
    let slot = first.command(&["CLUSTER", "KEYSLOT", "emq:{moving}:pending"]).await.int();
    let owner = (slot / 5461).min(2) as usize;
    let target = (owner + 1) % 3;
    let target_id = Raw::connect(&nodes[target]).await.command(&["CLUSTER", "MYID"]).await.text().to_owned();
    // An empty slot can be given away without moving keys.
    for node in [&nodes[target], &nodes[owner]] {
        Raw::connect(node).await.line(&format!("CLUSTER SETSLOT {slot} NODE {target_id}")).await;
    }
    queue.enqueue(Count { n: 1 }).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, 1);
}
