//! An enqueue that answers when the job is on replicas or disks, too: with replicas that are there, frozen, or missing.

use std::{
    future::IntoFuture as _,
    time::{Duration, Instant},
};

use emq::{CallError, Client, Durability, EnqueueError, JobId, JobState, Queue, Ticket};
use support::proxy::{When, named};
use support::{Proxy, Raw, Server, queue_name};

use crate::common::{MINUTE, Work, eventually, impatient};

/// Long enough for a replica that answers, on any machine.
const PATIENT: Duration = Duration::from_secs(20);

/// Long enough to see that nobody answers.
const BRIEF: Duration = Duration::from_millis(150);

/// A primary with replicas that follow it.
struct Replicated {
    primary: Server,
    replicas: Vec<Server>,
}

impl Replicated {
    async fn with(replicas: usize) -> Self {
        let primary = Server::start().await;
        let mut started = Vec::new();
        for _ in 0..replicas {
            started.push(Server::builder().replica_of(&primary).start().await);
        }
        for replica in &started {
            let mut raw = Raw::connect(replica).await;
            eventually("the replica follows", async || {
                raw.command(&["INFO", "replication"]).await.text().contains("master_link_status:up")
            })
            .await;
        }
        // The link is up a moment before the primary counts the replica.
        let mut raw = Raw::connect(&primary).await;
        let count = replicas.to_string();
        eventually("the primary counts them", async || {
            raw.line("SET warm up").await;
            raw.line(&format!("WAIT {count} 100")).await.int() == i64::try_from(replicas).unwrap()
        })
        .await;
        Self { primary, replicas: started }
    }

    async fn queue(&self) -> Queue {
        queue_of(&self.primary, &queue_name("durable")).await
    }
}

async fn queue_of(server: &Server, name: &str) -> Queue {
    Client::connect(server.url()).await.unwrap().queue(name).unwrap()
}

async fn has(server: &Server, queue: &Queue, id: JobId) -> bool {
    Raw::connect(server).await.line(&format!("EXISTS emq:{{{}}}:job:{id}", queue.name())).await.int() == 1
}

/// The ticket of a job that is enqueued and not as durable as was asked, and how many replicas have it.
fn short<J: std::fmt::Debug>(outcome: Result<Ticket<J>, EnqueueError>) -> (Ticket, u32) {
    match outcome {
        Err(EnqueueError::NotDurable { ticket, replicas, source: None, .. }) => (ticket, replicas),
        other => panic!("not that it fell short, but {other:?}"),
    }
}

#[tokio::test]
async fn a_job_is_on_a_replica_when_its_enqueue_answers() {
    let servers = Replicated::with(1).await;
    let (queue, replica) = (servers.queue().await, &servers.replicas[0]);
    queue.enqueue(Work { n: 0 }).durable(1, PATIENT).await.unwrap();
    replica.freeze();
    let sent = tokio::spawn(queue.enqueue(Work { n: 1 }).durable(1, PATIENT).into_future());
    eventually("it is enqueued", async || queue.counts().await.unwrap().pending == 2).await;
    tokio::time::sleep(BRIEF).await;
    assert!(!sent.is_finished(), "the replica can't have it");
    replica.thaw();
    let ticket = sent.await.unwrap().unwrap();
    assert!(has(replica, &queue, ticket.id()).await);
    assert!(!ticket.is_duplicate());

    servers.primary.kill().await;
    Raw::connect(replica).await.line("REPLICAOF NO ONE").await;
    let queue = queue_of(replica, queue.name().as_str()).await;
    assert_eq!(queue.state(ticket.id()).await.unwrap(), Some(JobState::Pending), "it outlives its server");
}

#[tokio::test]
async fn a_job_whose_replica_is_frozen_is_enqueued_and_its_error_says_so() {
    let servers = Replicated::with(1).await;
    let queue = servers.queue().await;
    servers.replicas[0].freeze();
    let error = queue.enqueue(Work { n: 1 }).durable(1, BRIEF).await.unwrap_err();
    let text = error.to_string();
    let (ticket, replicas) = short::<()>(Err(error));
    assert_eq!(replicas, 0);
    assert!(text.contains(&format!("{} is enqueued", ticket.id())) && text.contains("on 1 replica"), "{text}");
    assert_eq!(queue.state(ticket.id()).await.unwrap(), Some(JobState::Pending));

    // Sent again, it is still short: the server must not be asked about a connection that has written nothing.
    let again = queue_of(&servers.primary, queue.name().as_str()).await;
    let (same, replicas) = short(again.enqueue(Work { n: 1 }).id(ticket.id()).durable(1, BRIEF).await);
    assert_eq!((same.id(), same.is_duplicate(), replicas), (ticket.id(), true, 0));

    servers.replicas[0].thaw();
    let same = again.enqueue(Work { n: 1 }).id(ticket.id()).durable(1, PATIENT).await.unwrap();
    assert_eq!(same.id(), ticket.id());
    assert!(has(&servers.replicas[0], &queue, ticket.id()).await);
    assert_eq!(queue.counts().await.unwrap().pending, 1);
}

#[tokio::test]
async fn replicas_are_counted() {
    let servers = Replicated::with(2).await;
    let queue = servers.queue().await;
    queue.enqueue(Work { n: 1 }).durable(2, PATIENT).await.unwrap();
    servers.replicas[1].freeze();
    queue.enqueue(Work { n: 2 }).durable(1, PATIENT).await.unwrap();
    assert_eq!(short(queue.enqueue(Work { n: 3 }).durable(2, BRIEF).await).1, 1);
    servers.replicas[1].thaw();
}

#[tokio::test]
async fn without_a_replica_nothing_is_durable_and_everything_enqueued() {
    let queue = queue_of(support::server().await, &queue_name("alone")).await;
    let (ticket, replicas) = short(queue.enqueue(Work { n: 1 }).durable(1, Duration::ZERO).await);
    assert_eq!((queue.state(ticket.id()).await.unwrap(), replicas), (Some(JobState::Pending), 0));
    queue.enqueue(Work { n: 2 }).durable(0, Duration::MAX).await.unwrap();
}

/// A connection that is made anew has written nothing, and the server would say at once that all of that is everywhere.
#[tokio::test]
async fn a_line_that_breaks_before_the_wait_doesnt_make_a_job_durable() {
    let servers = Replicated::with(1).await;
    servers.replicas[0].freeze();
    let name = queue_name("broken");
    for command in ["HINCRBY", "WAIT"] {
        for cut in [Proxy::cut_request, Proxy::cut_reply] {
            let proxy = Proxy::start(servers.primary.port());
            let queue = impatient(&proxy.url()).connect().await.unwrap().queue(&name).unwrap();
            cut(&proxy, named(command), When::Once);
            let (ticket, replicas) = short(queue.enqueue(Work { n: 1 }).durable(1, BRIEF).await);
            assert_eq!((ticket.is_duplicate(), replicas, proxy.cuts()), (false, 0, 1), "{command}");
        }
    }
    let queue = queue_of(&servers.primary, &name).await;
    assert_eq!(queue.counts().await.unwrap().pending, 4, "and none is there twice");
    servers.replicas[0].thaw();
}

#[tokio::test]
async fn a_durable_enqueue_whose_line_breaks_anywhere_is_carried_out_once() {
    let servers = Replicated::with(1).await;
    let name = queue_name("anywhere");
    let mut cases = tokio::task::JoinSet::new();
    for (n, command) in ["CLIENT", "EVALSHA", "HINCRBY", "WAIT"].into_iter().enumerate() {
        for (m, cut) in [Proxy::cut_request, Proxy::cut_reply, Proxy::lose_reply].into_iter().enumerate() {
            let (proxy, name) = (Proxy::start(servers.primary.port()), name.clone());
            cases.spawn(async move {
                let queue = impatient(&proxy.url()).connect().await.unwrap().queue(&name).unwrap();
                // So that the connection is there, and the fault hits an enqueue.
                queue.enqueue(Work { n: 1 }).unique("first").durable(1, PATIENT).await.unwrap();
                cut(&proxy, named(command), When::Once);
                let minted = queue.enqueue(Work { n: 2 }).durable(1, Duration::from_secs(1)).await.unwrap();
                // Of an id that the user gave, too: what the first try has admitted is no duplicate for the second.
                // Unless it couldn't hear of it.
                cut(&proxy, named(command), When::Once);
                let id = format!("JOB0JZGkP9AM{n}{m}").parse().unwrap();
                let given = queue.enqueue(Work { n: 3 }).id(id).durable(1, Duration::from_secs(1)).await.unwrap();
                assert_eq!(proxy.cuts(), 2);
                let unheard = command == "EVALSHA" && m > 0;
                assert_eq!((minted.is_duplicate(), given.is_duplicate()), (false, unheard), "{command} {m}");
            });
        }
    }
    cases.join_all().await;
    let counts = queue_of(&servers.primary, &name).await.counts().await.unwrap();
    assert_eq!(counts.pending, 1 + 12 + 12);
}

#[tokio::test]
async fn many_jobs_wait_once_for_a_thousand() {
    let servers = Replicated::with(1).await;
    let queue = servers.queue().await;
    let before = calls(&servers.primary, "wait").await;
    let tickets = queue.enqueue_many((0..1_500).map(|n| Work { n })).durable(1, PATIENT).await.unwrap();
    assert_eq!((tickets.len(), calls(&servers.primary, "wait").await - before), (1_500, 2));

    servers.replicas[0].freeze();
    let error = queue.enqueue_many((0..3).map(|n| Work { n })).durable(1, BRIEF).await.unwrap_err();
    assert_eq!((error.failed, error.outcomes.len()), (3, 3));
    for outcome in error.outcomes {
        let (ticket, _) = short(outcome);
        assert_eq!(queue.state(ticket.id()).await.unwrap(), Some(JobState::Pending));
    }
    servers.replicas[0].thaw();
}

/// How often the server has carried out a command.
async fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.info("commandstats").await;
    let calls =
        stats.get(&format!("cmdstat_{command}")).and_then(|stat| stat.strip_prefix("calls=")?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn more_than_can_wait_at_once_are_enqueued_in_bounded_time_and_hold_up_nobody() {
    let servers = Replicated::with(1).await;
    let queue = servers.queue().await;
    servers.replicas[0].freeze();
    let begin = Instant::now();
    let sent: Vec<_> =
        (0..40).map(|n| tokio::spawn(queue.enqueue(Work { n }).durable(1, BRIEF * 4).into_future())).collect();
    eventually("they wait", async || blocked(&servers.primary).await > 0).await;
    let other = Instant::now();
    queue.enqueue(Work { n: 100 }).await.unwrap();
    assert!(other.elapsed() < Duration::from_secs(2), "it doesn't wait with them: {:?}", other.elapsed());
    for enqueue in sent {
        short(enqueue.await.unwrap());
    }
    assert!(begin.elapsed() < PATIENT, "{:?}", begin.elapsed());
    assert_eq!(queue.counts().await.unwrap().pending, 41);
    servers.replicas[0].thaw();
    let sent: Vec<_> =
        (0..40).map(|n| tokio::spawn(queue.enqueue(Work { n }).durable(1, PATIENT).into_future())).collect();
    for enqueue in sent {
        enqueue.await.unwrap().unwrap();
    }
}

async fn blocked(server: &Server) -> u64 {
    server.info("clients").await["blocked_clients"].parse().unwrap()
}

#[tokio::test]
async fn one_that_is_dropped_while_it_waits_holds_up_no_other_and_leaves_no_connection() {
    let servers = Replicated::with(1).await;
    let queue = servers.queue().await;
    servers.replicas[0].freeze();
    for n in 0..10 {
        let waits = tokio::spawn(queue.enqueue(Work { n }).durable(1, MINUTE).into_future());
        eventually("it waits", async || blocked(&servers.primary).await == 1).await;
        waits.abort();
        eventually("it waits no more", async || blocked(&servers.primary).await == 0).await;
    }
    servers.replicas[0].thaw();
    queue.enqueue(Work { n: 10 }).durable(1, PATIENT).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, 11);
}

#[tokio::test]
async fn a_client_that_is_closed_closes_what_waited_for_it() {
    let servers = Replicated::with(1).await;
    let client = Client::connect(servers.primary.url()).await.unwrap();
    client.enqueue(Work { n: 1 }).durable(1, PATIENT).await.unwrap();
    client.close().await;
    let error = client.enqueue(Work { n: 2 }).durable(1, PATIENT).await.unwrap_err();
    assert!(matches!(error, EnqueueError::Call { source: CallError::Closed, .. }), "{error:?}");
    eventually("nobody is connected", async || {
        // The replica, and the one that asks.
        Raw::connect(&servers.primary).await.line("CLIENT LIST").await.text().lines().count() == 2
    })
    .await;
}

#[tokio::test]
async fn what_is_to_be_on_the_disk_is_there_or_the_error_says_why_not() {
    let server = Server::builder().append_only(true).config("appendfsync", "everysec").start().await;
    let queue = queue_of(&server, &queue_name("disk")).await;
    let mut raw = Raw::connect(&server).await;
    let knows = !raw.command(&["WAITAOF", "0", "0", "1"]).await.is_error();
    let outcome = queue.enqueue(Work { n: 1 }).durable(Durability::synced(0), PATIENT).await;
    if !knows {
        let id = refused(outcome);
        assert_eq!(queue.state(id).await.unwrap(), Some(JobState::Pending), "it is enqueued all the same");
        return;
    }
    let id = outcome.unwrap().id();
    assert_eq!(short(queue.enqueue(Work { n: 2 }).durable(Durability::synced(1), BRIEF).await).1, 0);
    server.kill().await;
    server.restart().await;
    eventually("it is there again", async || queue.state(id).await.is_ok_and(|state| state.is_some())).await;
    Raw::connect(&server).await.line("CONFIG SET appendonly no").await;
    refused(queue.enqueue(Work { n: 3 }).durable(Durability::synced(0), PATIENT).await);
}

/// The id of a job that is enqueued, and whose server can't say more.
fn refused<J: std::fmt::Debug>(outcome: Result<Ticket<J>, EnqueueError>) -> JobId {
    match outcome {
        Err(EnqueueError::NotDurable { ticket, source: Some(CallError::Refused { .. }), .. }) => ticket.id(),
        other => panic!("not refused, but {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_durable_by_chance_while_every_client_is_killed_all_the_time() {
    let servers = Replicated::with(1).await;
    servers.replicas[0].freeze();
    let queue = impatient(&servers.primary.url()).connect().await.unwrap().queue(queue_name("killed")).unwrap();
    let mut raw = Raw::connect(&servers.primary).await;
    let kills = tokio::spawn(async move {
        loop {
            raw.line("CLIENT KILL TYPE normal SKIPME yes").await;
            tokio::time::sleep(Duration::from_millis(12)).await;
        }
    });
    let mut tries = tokio::task::JoinSet::new();
    for n in 0..6 {
        let queue = queue.clone();
        tries.spawn(async move {
            let id: JobId = format!("JOB0JZGkP9AM0{n}").parse().unwrap();
            let end = Instant::now() + Duration::from_secs(2);
            let mut answers = 0_u32;
            while Instant::now() < end {
                // Of an id that is there: nothing is written for it any more.
                let outcome = queue.enqueue(Work { n }).id(id).durable(1, Duration::from_millis(2)).await;
                assert!(matches!(outcome, Err(EnqueueError::NotDurable { .. })), "{outcome:?}");
                answers += 1;
            }
            answers
        });
    }
    let answers: u32 = tries.join_all().await.into_iter().sum();
    kills.abort();
    servers.replicas[0].thaw();
    assert!(answers >= 6, "{answers}");
}
