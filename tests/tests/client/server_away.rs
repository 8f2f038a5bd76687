//! A server that goes away: an error in bounded time, and all is well when it is back.

use std::time::{Duration, Instant};

use emq::{Admission, CallError, Completion, EnqueueError, Settled};
use support::{Proxy, Raw, Server};

use crate::common::{BOUNDED, MINUTE, Work, impatient};

#[tokio::test]
async fn killed_and_started_again() {
    let server = Server::builder().append_only(true).config("appendfsync", "always").start().await;
    let client = impatient(&server.url()).retry_for(Duration::from_millis(500)).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    queue.enqueue(Work { n: 0 }).await.unwrap();
    let mut claimer = queue.claimer("w");
    let lease = claimer.claim(1).await.unwrap().jobs[0].lease;
    server.kill().await;

    let began = Instant::now();
    let error = queue.enqueue(Work { n: 1 }).await.unwrap_err();
    let EnqueueError::Call { id, source } = error else { panic!("{error:?}") };
    assert!(matches!(source, CallError::Unreachable { .. } | CallError::Unknown { .. }), "{source:?}");
    assert!(source.is_transient());
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    assert!(claimer.claim(1).await.is_err());

    server.restart().await;
    let patient = impatient(&server.url()).connect().await.unwrap().queue("q").unwrap();
    assert_eq!(patient.enqueue(Work { n: 1 }).id(id).await.unwrap().admission(), Admission::Enqueued);
    // The client that was there before finds its way back by itself.
    crate::common::eventually("it is connected", async || queue.counts().await.is_ok()).await;
    assert_eq!(queue.complete(&lease, Completion::empty()).await.unwrap(), Settled::Accepted);
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 1);
    assert!(client.reconnects() >= 1);
}

#[tokio::test]
async fn a_call_outlives_a_restart() {
    let server = Server::builder().append_only(true).config("appendfsync", "always").start().await;
    let queue = impatient(&server.url()).connect().await.unwrap().queue("q").unwrap();
    server.kill().await;
    let call = tokio::spawn(queue.enqueue(Work { n: 1 }).into_future());
    server.restart().await;
    assert_eq!(call.await.unwrap().unwrap().admission(), Admission::Enqueued);
    assert_eq!(queue.counts().await.unwrap().pending, 1);
}

/// These have connections of their own, which are made when they are first needed.
#[tokio::test]
async fn a_connection_that_is_first_needed_while_the_server_is_away_outlives_a_restart() {
    let server = Server::builder().append_only(true).config("appendfsync", "always").start().await;
    let client = impatient(&server.url()).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    server.kill().await;
    let enqueue = queue.enqueue(Work { n: 1 }).durable(0, MINUTE);
    let durable = tokio::spawn(enqueue.into_future());
    let events = tokio::spawn(async move { client.events(queue.name().as_str()).await });
    server.restart().await;
    durable.await.unwrap().unwrap();
    events.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_outlives_a_refusal() {
    let server = Server::start().await;
    let queue = impatient(&server.url()).connect().await.unwrap().queue("q").unwrap();
    let mut raw = Raw::connect(&server).await;
    for (code, refuse, accept) in [
        ("NOREPLICAS", "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
        ("READONLY", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    ] {
        raw.line(refuse).await;
        let call = tokio::spawn(queue.enqueue(Work { n: 1 }).into_future());
        let counted = format!("errorstat_{code}:");
        crate::common::eventually("it was refused", async || {
            raw.line("INFO errorstats").await.text().contains(&counted)
        })
        .await;
        raw.line(accept).await;
        assert_eq!(call.await.unwrap().unwrap().admission(), Admission::Enqueued, "{code}");
    }
    assert_eq!(queue.counts().await.unwrap().pending, 2);
}

#[tokio::test]
async fn frozen_and_thawed() {
    let server = Server::start().await;
    let client = impatient(&server.url()).retry_for(Duration::ZERO).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    queue.counts().await.unwrap();
    server.freeze();
    let began = Instant::now();
    let error = queue.counts().await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "it may have been carried out: {error:?}");
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    server.thaw();
    crate::common::eventually("it answers", async || queue.counts().await.is_ok()).await;
}

#[tokio::test]
async fn nothing_listens_where_it_was() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let client = impatient(&proxy.url()).retry_for(Duration::from_millis(200)).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    proxy.refuse();
    proxy.sever();
    for _ in 0..5 {
        let began = Instant::now();
        assert!(queue.enqueue(Work { n: 1 }).await.is_err());
        assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    }
    proxy.clear();
    crate::common::eventually("it is connected", async || queue.counts().await.is_ok()).await;
    let pending = queue.counts().await.unwrap().pending;
    queue.enqueue(Work { n: 2 }).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, pending + 1);
}
