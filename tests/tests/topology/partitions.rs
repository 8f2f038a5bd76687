//! One logical queue over the nodes of a Cluster.

use std::time::Duration;

use emq::{Client, ClientBuilder, Draft, JobId, JobState, Partitioned};
use support::{Raw, Server, queue_name};

use crate::{
    cluster::{cluster, owner, url},
    jobs::{Count, Counter, start},
};

/// A client that notices soon that a node is gone, and goes on trying for long enough.
fn builder(nodes: &[Server], name: &str, partitions: u16) -> ClientBuilder {
    let builder =
        Client::builder(url(nodes)).command_timeout(Duration::from_secs(1)).retry_for(Duration::from_secs(30));
    builder.partitioned(name, partitions)
}

/// Enqueues jobs, a third of them into lanes.
async fn fill(queue: &Partitioned, jobs: u64) -> Vec<JobId> {
    let drafts = (0..jobs).map(|n| {
        let draft = Draft::of(Count { n: 1 });
        if n % 3 == 0 { draft.group(format!("tenant-{}", n % 30)) } else { draft }
    });
    queue.enqueue_many(drafts).await.unwrap().iter().map(emq::Ticket::id).collect()
}

/// How many jobs of a queue wait on each node.
async fn waiting_on(nodes: &[Server], queue: &Partitioned) -> [u64; 3] {
    let mut waiting = [0; 3];
    for partition in queue.partitions().await.unwrap() {
        waiting[owner(nodes, &partition).await.1] += partition.counts().await.unwrap().pending;
    }
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_one_queue_lie_on_all_nodes_and_one_worker_runs_them() {
    let nodes = cluster().await;
    let name = queue_name("divided");
    let client = builder(&nodes, &name, 12).connect().await.unwrap();
    let queue = client.partitioned(&name).unwrap();
    fill(&queue, 1_200).await;
    let waiting = waiting_on(&nodes, &queue).await;
    assert_eq!(waiting.iter().sum::<u64>(), 1_200);
    assert!(waiting.iter().all(|jobs| *jobs > 200), "{waiting:?}");
    let counter = Counter::default();
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    counter.reaches(1_200).await;
    // What comes later wakes it in whichever partition.
    fill(&queue, 100).await;
    counter.reaches(1_300).await;
    assert_eq!((counter.jobs(), counter.repeats()), (1_300, 0));
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_partitions_loses_nothing_on_a_cluster() {
    let nodes = cluster().await;
    let name = queue_name("resized");
    let mut ids = Vec::new();
    for partitions in [3, 9, 2] {
        let client = builder(&nodes, &name, partitions).connect().await.unwrap();
        ids.extend(fill(&client.partitioned(&name).unwrap(), 150).await);
    }
    let client = builder(&nodes, &name, 2).connect().await.unwrap();
    let queue = client.partitioned(&name).unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, 450);
    for id in ids.iter().step_by(7) {
        assert_eq!(queue.state(*id).await.unwrap(), Some(JobState::Pending));
    }
    let counter = Counter::default();
    let worker = start(&client, &counter, &[name]);
    counter.reaches(450).await;
    assert!(ids.iter().all(|id| counter.runs(*id) == 1));
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_and_comes_back_loses_no_job_of_a_queue_that_is_divided() {
    let nodes = cluster().await;
    let name = queue_name("falling");
    let client = builder(&nodes, &name, 6).connect().await.unwrap();
    let queue = client.partitioned(&name).unwrap();
    let counter = Counter::default();
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    let mut ids = fill(&queue, 300).await;
    counter.reaches(100).await;
    let (before, during) = (counter.jobs(), fill(&queue, 300));
    nodes[1].kill().await;
    // Jobs for the node that is away wait for it.
    let (during, ()) = tokio::join!(during, nodes[1].restart());
    ids.extend(during);
    ids.extend(fill(&queue, 300).await);
    while ids.iter().any(|id| counter.runs(*id) == 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(before < 900 && counter.jobs() == 900, "nothing but what was enqueued has run");
    assert_eq!(counter.repeats(), 0, "its append-only file has everything that was answered");
    while queue.counts().await.unwrap().unfinished() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_one_connection_that_waits_for_each_partition_of_a_cluster() {
    let nodes = cluster().await;
    let name = queue_name("quiet");
    let client = builder(&nodes, &name, 6).connect().await.unwrap();
    let worker = start(&client, &Counter::default(), &[name]);
    loop {
        let mut blocked = 0;
        for node in &nodes {
            let list = Raw::connect(node).await.command(&["CLIENT", "LIST"]).await;
            blocked += list.text().lines().filter(|line| line.contains("flags=b")).count();
        }
        assert!(blocked <= 6, "{blocked}");
        if blocked == 6 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.shutdown();
}
