//! The client library tells its errors apart by text alone. These are the texts, from a live server.

use std::time::Duration;

use emq::{CallError, ClientBuilder, Queue};
use support::proxy::{When, named};
use support::{Proxy, Raw, Server};

use crate::common::{eventually, impatient, patient};

/// A queue through a proxy, whose calls are tried once.
async fn once(proxy: &Proxy) -> Queue {
    once_by(patient(&proxy.url())).await
}

async fn once_by(client: ClientBuilder) -> Queue {
    let client = client.retry_for(Duration::ZERO).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    // The script is loaded by now.
    queue.counts().await.unwrap();
    queue
}

fn text(error: &CallError) -> String {
    let ours = std::error::Error::source(error);
    ours.and_then(std::error::Error::source).map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn a_connection_that_closes_under_a_call_leaves_it_unknown() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let queue = once(&proxy).await;
    proxy.cut_reply(named("EVALSHA"), When::Once);
    let error = queue.counts().await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error:?}");
    assert_eq!(text(&error), "IO Error: Connection closed.");
}

#[tokio::test]
async fn a_silent_server_leaves_a_call_unknown() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let queue = once_by(impatient(&proxy.url())).await;
    proxy.lose_reply(named("EVALSHA"), When::Once);
    let error = queue.counts().await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error:?}");
    assert_eq!(text(&error), "Timeout Error: Request timed out.");
}

#[tokio::test]
async fn what_counts_as_not_sent_was_not_carried_out() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let queue = once(&proxy).await;
    let mut raw = Raw::connect(&server).await;
    raw.line("CONFIG RESETSTAT").await;
    let known = [
        "Canceled: Canceled.",
        "Canceled: Connection closed unexpectedly.",
        "IO Error: Connection closed.",
        "Timeout Error: Request timed out.",
        "Unknown Error: Failed to route command.",
        "Unknown Error: Too many failed write attempts.",
    ];
    let (mut calls, mut not_sent) = (0, 0);
    for _ in 0..30 {
        eventually("it is connected", async || {
            calls += 1;
            queue.counts().await.is_ok()
        })
        .await;
        let burst: Vec<_> = (0..20)
            .map(|n| {
                if n == 10 {
                    proxy.sever();
                }
                let queue = queue.clone();
                tokio::spawn(async move { queue.counts().await })
            })
            .collect();
        for call in burst {
            calls += 1;
            match call.await.unwrap() {
                Ok(_) => {}
                Err(CallError::Unreachable { .. }) => not_sent += 1,
                Err(error @ CallError::Unknown { .. }) => {
                    let is_os = text(&error).starts_with("IO Error: Os");
                    assert!(is_os || known.contains(&text(&error).as_str()), "{error:?}");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    let info = raw.line("INFO commandstats").await;
    let stats = info.text().lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    let executed: u64 = stats.split(',').next().unwrap().parse().unwrap();
    // Those of the connecting loop that failed aren't told apart.
    assert!(executed <= calls - not_sent, "{executed} of {calls} were carried out, and {not_sent} not sent");
}

#[tokio::test]
async fn what_the_server_refuses_has_its_code() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let queue = once(&proxy).await;
    let mut raw = Raw::connect(&server).await;
    let code = |error: CallError| match error {
        CallError::Refused { code, .. } => code,
        other => panic!("{other:?}"),
    };
    raw.line("SET emq:{q}:pending text").await;
    assert_eq!(code(queue.counts().await.unwrap_err()), "WRONGTYPE");
    raw.line("DEL emq:{q}:pending").await;

    raw.line("CONFIG SET maxmemory 1").await;
    let error = queue.enqueue(crate::common::Work::default()).await.unwrap_err();
    let emq::EnqueueError::Call { source, .. } = error else { panic!("{error:?}") };
    assert!(!source.is_transient());
    assert!(source.to_string().contains("jobs in hand can still be completed"), "{source}");
    assert_eq!(code(source), "OOM");
    raw.line("CONFIG SET maxmemory 0").await;

    raw.line("CONFIG SET min-replicas-to-write 1").await;
    let error = queue.enqueue(crate::common::Work::default()).await.unwrap_err();
    let emq::EnqueueError::Call { source, .. } = error else { panic!("{error:?}") };
    assert!(source.is_transient(), "{source:?}");
    assert_eq!(code(source), "NOREPLICAS");
    raw.line("CONFIG SET min-replicas-to-write 0").await;

    // A script that runs for too long holds everyone up.
    raw.line("CONFIG SET lua-time-limit 1").await;
    raw.send(&["EVAL", "while true do end", "0"]).await.unwrap();
    let mut busy = None;
    eventually("the server is busy", async || {
        busy = queue.counts().await.err();
        matches!(busy, Some(CallError::Refused { .. }))
    })
    .await;
    let busy = busy.unwrap();
    assert!(busy.is_transient(), "{busy:?}");
    assert_eq!(code(busy), "BUSY");
    Raw::connect(&server).await.line("SCRIPT KILL").await;
    raw.receive().await.unwrap();
    eventually("the server is back", async || queue.counts().await.is_ok()).await;
}

#[tokio::test]
async fn a_refusal_of_a_script_is_not_taken_for_one_of_the_connection() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let queue = once(&proxy).await;
    let mut raw = Raw::connect(&server).await;
    raw.line("SET emq:{q}:schedule text").await;
    let error = queue.promote().await.unwrap_err();
    assert!(matches!(&error, CallError::Refused { code, .. } if code == "WRONGTYPE"), "{error:?}");
    raw.line("DEL emq:{q}:schedule").await;
    assert_eq!(queue.counts().await.unwrap().unfinished(), 0, "the connection is as good as before");
}
