use std::time::Duration;

use emq::{Client, Draft, Queue};
use support::{Raw, Server, queue_name, server::Builder};

use crate::jobs::{Count, Counter, start};

/// Three primaries that share the slots.
pub(crate) async fn cluster() -> Vec<Server> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node().start().await);
    }
    for (n, node) in nodes.iter().enumerate() {
        // Each has a version of its own, as the servers' own tools do it: two of the same are only told apart once they have
        // met, and no failover is voted for until all have heard of that.
        Raw::connect(node).await.line(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1)).await;
        let (from, to) = (n * 5461, if n == 2 { 16_383 } else { (n + 1) * 5461 - 1 });
        let slots: Vec<String> = (from..=to).map(|slot| slot.to_string()).collect();
        let mut command = vec!["CLUSTER", "ADDSLOTS"];
        command.extend(slots.iter().map(String::as_str));
        assert!(!Raw::connect(node).await.command(&command).await.is_error());
        meet(&nodes[0], node).await;
    }
    formed(&nodes).await;
    nodes
}

/// A node of a cluster, which keeps its data.
pub(crate) fn node() -> Builder {
    let node = Server::builder().append_only(true).config("appendfsync", "always").config("cluster-enabled", "yes");
    node.config("cluster-node-timeout", "2000").config("cluster-replica-validity-factor", "0")
}

pub(crate) async fn meet(first: &Server, node: &Server) {
    Raw::connect(first).await.line(&format!("CLUSTER MEET 127.0.0.1 {}", node.port())).await;
}

/// A queue whose slot a node had when the cluster was made.
pub(crate) async fn queue_at(client: &Client, nodes: &[Server], at: usize) -> Queue {
    loop {
        let queue = client.queue(queue_name("placed")).unwrap();
        if owner(nodes, &queue).await.1 == at {
            return queue;
        }
    }
}

/// Waits until every node knows every other.
pub(crate) async fn formed(nodes: &[Server]) {
    for node in nodes {
        let mut raw = Raw::connect(node).await;
        // Nothing announces that a cluster has formed: it has to be asked.
        while !is_formed(&mut raw, nodes.len()).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The address of a cluster.
pub(crate) fn url(nodes: &[Server]) -> String {
    format!("redis-cluster://127.0.0.1:{}", nodes[0].port())
}

/// A client of a cluster that tries for longer than a slot takes to be moved, on a machine that is busy with other things.
pub(crate) async fn patient(nodes: &[Server]) -> Client {
    Client::builder(url(nodes)).retry_for(Duration::from_secs(60)).connect().await.unwrap()
}

/// The slot of a queue, and which node had it when the cluster was made.
pub(crate) async fn owner(nodes: &[Server], queue: &Queue) -> (i64, usize) {
    let key = format!("CLUSTER KEYSLOT emq:{{{}}}:pending", queue.name());
    let slot = Raw::connect(&nodes[0]).await.line(&key).await.int();
    (slot, (slot / 5461).min(2) as usize)
}

async fn is_formed(raw: &mut Raw, nodes: usize) -> bool {
    let info = raw.command(&["CLUSTER", "INFO"]).await.text().to_owned();
    let knows = info.contains(&format!("cluster_known_nodes:{nodes}\r"));
    knows && info.contains("cluster_state:ok") && info.contains("cluster_size:3")
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_in_every_slot_of_a_cluster_are_served_by_one_worker() {
    let nodes = cluster().await;
    let client = Client::connect(url(&nodes)).await.unwrap();
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
    let client = patient(&nodes).await;
    let queue = client.queue("moving").unwrap();

    let (slot, owner) = owner(&nodes, &queue).await;
    let target = (owner + 1) % 3;
    let target_id = Raw::connect(&nodes[target]).await.command(&["CLUSTER", "MYID"]).await.text().to_owned();
    // An empty slot can be given away without moving keys. Only who imports it claims it for good: what the others still say
    // of it doesn't count then.
    let owner_id = Raw::connect(&nodes[owner]).await.command(&["CLUSTER", "MYID"]).await.text().to_owned();
    Raw::connect(&nodes[target]).await.line(&format!("CLUSTER SETSLOT {slot} IMPORTING {owner_id}")).await;
    Raw::connect(&nodes[owner]).await.line(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}")).await;
    for node in [&nodes[target], &nodes[owner]] {
        Raw::connect(node).await.line(&format!("CLUSTER SETSLOT {slot} NODE {target_id}")).await;
    }
    queue.enqueue(Count { n: 1 }).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, 1);
}
