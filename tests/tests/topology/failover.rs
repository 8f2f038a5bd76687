//! A primary that dies while jobs are enqueued and run: who comes after it, and what is there then.

use std::time::{Duration, Instant};

use emq::{Client, ClientBuilder, JobId, JobState, Queue};
use support::{Raw, Server, queue_name};

use crate::{
    cluster::{cluster, formed, meet, node, queue_at, url},
    jobs::{Count, Counter, start},
    load::Load,
    sentinel::Watched,
};

/// Within what a failover has to be over, on any machine.
const BOUND: Duration = Duration::from_secs(30);

/// A client that notices soon that a server is gone, and goes on trying for long enough.
fn builder(url: String) -> ClientBuilder {
    Client::builder(url).command_timeout(Duration::from_secs(1)).retry_for(BOUND)
}

/// Makes a replica of a node, and waits until it has what the node has.
async fn replica_of(nodes: &[Server], at: usize) -> Server {
    let replica = node().start().await;
    meet(&nodes[0], &replica).await;
    let mut raw = Raw::connect(&replica).await;
    let id = Raw::connect(&nodes[at]).await.line("CLUSTER MYID").await.text().to_owned();
    // It has to have heard of the node first.
    while raw.command(&["CLUSTER", "REPLICATE", &id]).await.is_error() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !raw.line("INFO replication").await.text().contains("master_link_status:up") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    replica
}

/// Has a replica take over from its primary. The servers give that up after five seconds, without a word, and it is on whoever
/// asked to ask again.
async fn hand_over_to(replica: &Server) {
    let begin = Instant::now();
    let mut asked = None::<Instant>;
    while !is_primary(replica).await {
        assert!(begin.elapsed() < BOUND, "it takes over");
        if asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(6)) {
            let reply = Raw::connect(replica).await.command(&["CLUSTER", "FAILOVER"]).await;
            // It may have taken over just now.
            assert!(!reply.is_error() || is_primary(replica).await, "{reply}");
            asked = Some(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_durable_outlives_a_primary_of_a_cluster_that_is_killed_under_load() {
    let mut nodes = cluster().await;
    let replica = replica_of(&nodes, 1).await;
    nodes.push(replica);
    formed(&nodes).await;
    let client = builder(url(&nodes)).connect().await.unwrap();
    let queue = queue_at(&client, &nodes[..3], 1).await;
    let counter = Counter::default();
    let worker = start(&client, &counter, &[queue.name().to_string()]);
    let load = Load::durable(&queue, 1);
    counter.reaches(200).await;
    let completed = completed(&queue, &counter).await;
    // Whoever has this job has heard of those completions, too.
    queue.enqueue(Count { n: 1 }).durable(1, BOUND).await.unwrap();

    nodes[1].kill().await;
    let late = queue.enqueue(Count { n: 1 }).await.unwrap().id();
    all_run(&queue, &counter, &[late]).await;
    let taken = load.taken().await;
    all_run(&queue, &counter, &taken.durable).await;
    assert!(!taken.durable.is_empty(), "{taken:?}");
    none_ran_again(&counter, &completed);
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_of_a_cluster_that_hands_over_to_its_replica_loses_nothing() {
    let mut nodes = cluster().await;
    nodes.push(replica_of(&nodes, 1).await);
    formed(&nodes).await;
    let client = builder(url(&nodes)).connect().await.unwrap();
    let queue = queue_at(&client, &nodes[..3], 1).await;
    let counter = Counter::default();
    let worker = start(&client, &counter, &[queue.name().to_string()]);
    let load = Load::on(&queue);
    counter.reaches(200).await;
    hand_over_to(&nodes[3]).await;
    let late = queue.enqueue(Count { n: 1 }).await.unwrap().id();
    all_run(&queue, &counter, &[late]).await;
    all_run(&queue, &counter, &load.enqueued().await).await;
    assert_eq!(counter.repeats(), 0);
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_of_a_cluster_without_a_replica_that_dies_and_comes_back_has_its_workers_again() {
    let nodes = cluster().await;
    let client = builder(url(&nodes)).connect().await.unwrap();
    let queue = queue_at(&client, &nodes, 1).await;
    let counter = Counter::default();
    let worker = start(&client, &counter, &[queue.name().to_string()]);
    let load = Load::on(&queue);
    counter.reaches(200).await;
    nodes[1].kill().await;
    nodes[1].restart().await;
    let back = queue.enqueue(Count { n: 1 }).await.unwrap().id();
    all_run(&queue, &counter, &[back]).await;
    all_run(&queue, &counter, &load.enqueued().await).await;
    assert_eq!(counter.repeats(), 0, "its append-only file has everything that was answered");
    worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_the_slots_own_node_are_counted_in_a_cluster() {
    let mut nodes = cluster().await;
    nodes.push(replica_of(&nodes, 1).await);
    formed(&nodes).await;
    let client = Client::connect(url(&nodes)).await.unwrap();
    for at in [0, 1, 2] {
        let queue = queue_at(&client, &nodes[..3], at).await;
        let jobs = || (0..3).map(|n| Count { n });
        let outcome = queue.enqueue_many(jobs()).durable(1, Duration::from_millis(500)).await;
        assert_eq!(outcome.is_ok(), at == 1, "{outcome:?}");
        assert_eq!(queue.counts().await.unwrap().pending, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_durable_outlives_a_failover_of_sentinel_under_load() {
    let watched = Watched::with(2).await;
    let client = builder(watched.url()).connect().await.unwrap();
    let (counter, name) = (Counter::default(), queue_name("failover"));
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    let queue = client.queue(&name).unwrap();
    // On both, since either may be the next primary.
    let load = Load::durable(&queue, 2);
    counter.reaches(200).await;
    let completed = completed(&queue, &counter).await;
    // Whoever has this job has heard of those completions, too.
    let waiting = queue.enqueue(Count { n: 1 }).delay(Duration::from_secs(3600)).durable(2, BOUND).await.unwrap().id();

    watched.primary.kill().await;
    let late = queue.enqueue(Count { n: 1 }).durable(1, BOUND).await.unwrap().id();
    all_run(&queue, &counter, &[late]).await;
    let taken = load.taken().await;
    all_run(&queue, &counter, &taken.durable).await;
    assert!(!taken.durable.is_empty(), "{taken:?}");
    assert_eq!(queue.state(waiting).await.unwrap(), Some(JobState::Scheduled));
    none_ran_again(&counter, &completed);
    worker.shutdown();
}

/// Nobody dies: until it is told, the old primary takes writes that nobody will ever see.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_that_an_operator_asks_for_is_followed_and_what_was_durable_is_there() {
    let watched = Watched::with(1).await;
    let client = builder(watched.url()).connect().await.unwrap();
    let (counter, name) = (Counter::default(), queue_name("asked"));
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    let queue = client.queue(&name).unwrap();
    let load = Load::durable(&queue, 1);
    counter.reaches(100).await;
    let asked = Instant::now();
    let mut sentinel = Raw::connect(&watched.sentinel).await;
    // It has to have heard from the replica of late.
    while sentinel.command(&["SENTINEL", "FAILOVER", "main"]).await.is_error() {
        assert!(asked.elapsed() < BOUND, "the sentinel begins");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    while is_primary(&watched.primary).await {
        assert!(asked.elapsed() < BOUND, "the old primary is a replica now");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let id = queue.enqueue(Count { n: 1 }).durable(1, BOUND).await.unwrap().id();
    all_run(&queue, &counter, &[id]).await;
    all_run(&queue, &counter, &load.taken().await.durable).await;
    worker.shutdown();
}

/// On a connection of its own, since the sentinel closes them all; one that it closes in this moment has said nothing.
async fn is_primary(server: &Server) -> bool {
    let role = async { Raw::open(server.port()).await?.try_command(&["ROLE"]).await };
    role.await.is_ok_and(|role| role.to_string().contains("master"))
}

/// Waits until each of these jobs has run.
async fn all_run(queue: &Queue, counter: &Counter, ids: &[JobId]) {
    let begin = Instant::now();
    for id in ids {
        while counter.runs(*id) == 0 {
            assert!(begin.elapsed() < BOUND, "{id} doesn't run: {:?}", queue.state(*id).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The jobs that are completed by now.
async fn completed(queue: &Queue, counter: &Counter) -> Vec<JobId> {
    let mut completed = Vec::new();
    for id in counter.ids() {
        if queue.state(id).await.unwrap() == Some(JobState::Finished) {
            completed.push(id);
        }
    }
    assert!(!completed.is_empty(), "none of {} jobs", counter.jobs());
    completed
}

fn none_ran_again(counter: &Counter, completed: &[JobId]) {
    for id in completed {
        assert_eq!(counter.runs(*id), 1, "{id} was completed, and all replicas had heard of it");
    }
}
