//! A slot whose keys are moved one by one while jobs are enqueued and run.

use std::time::{Duration, Instant};

use support::{Raw, Reply, Server, queue_name};

use crate::{
    cluster::{cluster, owner, patient, queue_at},
    jobs::{Count, Counter, start},
    load::Load,
};

/// How many jobs wait for later.
const LATER: usize = 300;

/// Moves a slot as the servers' own tools do it: key by key, from one node to the next. With half of its keys here and half
/// there, it waits for `half_way`.
async fn move_slot(nodes: &[Server], slot: i64, from: usize, to: usize, half_way: impl Future<Output = ()>) -> usize {
    let mut half_way = Some(half_way);
    let mut raws = Vec::new();
    let mut ids = Vec::new();
    for node in nodes {
        let mut raw = Raw::connect(node).await;
        ids.push(raw.line("CLUSTER MYID").await.text().to_owned());
        raws.push(raw);
    }
    raws[to].line(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[from])).await;
    raws[from].line(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[to])).await;
    let mut moved = 0;
    loop {
        let keys = raws[from].line(&format!("CLUSTER GETKEYSINSLOT {slot} 5")).await;
        let Reply::Array(keys) = keys else { panic!("{keys}") };
        if keys.is_empty() {
            break;
        }
        let mut migrate = format!("MIGRATE 127.0.0.1 {}  0 5000 KEYS", nodes[to].port());
        for key in &keys {
            migrate.push(' ');
            migrate.push_str(key.text());
        }
        let args: Vec<&str> = migrate.split(' ').collect();
        let reply = raws[from].command(&args).await;
        assert!(!reply.is_error(), "{reply}");
        moved += keys.len();
        if moved >= LATER / 2
            && let Some(half_way) = half_way.take()
        {
            half_way.await;
        }
        // Slowly, as it is with many keys: what runs meanwhile meets the slot in every state.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for at in [to, from] {
        raws[at].line(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[to])).await;
    }
    moved
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_moved_key_by_key_under_load_loses_no_job_and_doubles_none() {
    let nodes = cluster().await;
    let client = patient(&nodes).await;
    let counter = Counter::default();
    let name = queue_name("resharded");
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    let queue = client.queue(&name).unwrap();
    let (slot, from) = owner(&nodes, &queue).await;
    // What waits for later has keys too, so that there is something to move whatever the worker does.
    let later: Vec<_> =
        (0..LATER).map(|_| emq::Draft::of(Count { n: 1 }).delay(Duration::from_secs(3600)).queue(&name)).collect();
    client.enqueue_many(later).await.unwrap();

    let load = Load::on(&queue);
    // Another queue, on another node, is nobody's business.
    let bystander = queue_at(&client, &nodes, (from + 2) % 3).await;
    let (undisturbed, others) = (Counter::default(), Load::on(&bystander));
    let their_worker = start(&client, &undisturbed, &[bystander.name().to_string()]);
    let mut at = from;
    for _ in 0..2 {
        counter.reaches(counter.jobs() as u64 + 100).await;
        let to = (at + 1) % nodes.len();
        let half_way = async {
            undisturbed.reaches(undisturbed.jobs() as u64 + 100).await;
        };
        assert!(move_slot(&nodes, slot, at, to, half_way).await >= LATER);
        at = to;
        let moved = Instant::now();
        counter.reaches(counter.jobs() as u64 + 100).await;
        assert!(moved.elapsed() < Duration::from_secs(30), "well again after {:?}", moved.elapsed());
    }
    let ids = load.enqueued().await;
    counter.reaches(ids.len() as u64).await;
    let idle = async { while queue.counts().await.unwrap().active > 0 {} };
    tokio::time::timeout(Duration::from_secs(20), idle).await.unwrap();
    let counts = queue.counts().await.unwrap();
    let later = LATER as u64;
    assert_eq!((counts.completed, counts.scheduled, counts.unfinished()), (ids.len() as u64, later, later));
    assert!(ids.iter().all(|id| counter.runs(*id) == 1), "{} runs too many", counter.repeats());
    let stats = worker.stats();
    assert_eq!((stats.stale, stats.lost, stats.dropped), (0, 0, 0));
    worker.shutdown();

    let ids = others.enqueued().await;
    undisturbed.reaches(ids.len() as u64).await;
    assert!(ids.iter().all(|id| undisturbed.runs(*id) == 1));
    their_worker.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_the_server_moves_in_one_go_is_followed() {
    let nodes = cluster().await;
    let client = patient(&nodes).await;
    let counter = Counter::default();
    let name = queue_name("migrated");
    let worker = start(&client, &counter, std::slice::from_ref(&name));
    let queue = client.queue(&name).unwrap();
    let (slot, from) = owner(&nodes, &queue).await;
    let to = (from + 1) % 3;
    let target = Raw::connect(&nodes[to]).await.line("CLUSTER MYID").await.text().to_owned();
    let load = Load::on(&queue);
    counter.reaches(100).await;
    let mut source = Raw::connect(&nodes[from]).await;
    let migrate = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}");
    let reply = source.command(&migrate.split(' ').collect::<Vec<_>>()).await;
    if reply.is_error() {
        println!("not tested: this server can't do that ({reply})");
    } else {
        let key = format!("emq:{{{name}}}:pending");
        let is_there = async {
            while !source.command(&["EXISTS", &key]).await.to_string().contains("MOVED") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_there).await.expect("the slot moves");
    }
    counter.reaches(counter.jobs() as u64 + 100).await;
    let ids = load.enqueued().await;
    counter.reaches(ids.len() as u64).await;
    assert!(ids.iter().all(|id| counter.runs(*id) == 1), "{} runs too many", counter.repeats());
    worker.shutdown();
}
