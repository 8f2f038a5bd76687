//! Who speaks which wire.

use std::time::Duration;

use emq::{CallError, Client, ConnectError};
use support::{Proxy, Raw, Server};

use crate::{
    common::{eventually, impatient},
    connect::pretend,
};

#[tokio::test]
async fn a_fresh_server_is_claimed() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    Client::connect(server.url()).await.unwrap();
    assert_eq!(raw.line("GET {emq}:version").await.text(), "echomq:3.0.0");
    assert_eq!(raw.line("TTL {emq}:version").await.int(), -1);
}

#[tokio::test]
async fn any_version_of_the_same_wire_is_accepted_and_left_alone() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.line("SET {emq}:version echomq:3.7.1").await;
    Client::connect(server.url()).await.unwrap();
    assert_eq!(raw.line("GET {emq}:version").await.text(), "echomq:3.7.1");
}

#[tokio::test]
async fn another_wire_is_a_typed_error_and_left_alone() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    for foreign in ["echomq:4.0.0", "echomq:2.9.9", "bullmq:3.0.0", "garbage"] {
        raw.line(&format!("SET {{emq}}:version {foreign}")).await;
        let error = Client::connect(server.url()).await.unwrap_err();
        let ConnectError::Call(CallError::ForeignVersion { found }) = &error else { panic!("{error:?}") };
        assert_eq!(found, foreign);
        assert_eq!(raw.line("GET {emq}:version").await.text(), foreign);
    }
    raw.line("DEL {emq}:version").await;
    raw.line("RPUSH {emq}:version text").await;
    let error = Client::connect(server.url()).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Call(CallError::Refused { code, .. }) if code == "WRONGTYPE"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_speaks_another_wire_after_a_reconnect_is_not_used_any_more() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let client = impatient(&proxy.url()).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    queue.counts().await.unwrap();
    let mut raw = Raw::connect(&server).await;
    raw.line("SET {emq}:version echomq:4.0.0").await;
    proxy.sever();
    eventually(
        "the new wire is noticed",
        async || matches!(queue.counts().await, Err(CallError::ForeignVersion { found }) if found == "echomq:4.0.0"),
    )
    .await;
    assert_eq!(client.reconnects(), 1);
}

/// A client whose server is replaced by the one at this port, until it says that it won't use it.
async fn replaced_by(port: u16) -> (CallError, impl AsyncFnMut() -> bool) {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let client = impatient(&proxy.url()).retry_for(Duration::ZERO).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    queue.counts().await.unwrap();
    proxy.redirect(port);
    proxy.sever();
    let mut unfit = None;
    eventually("the other server is noticed", async || {
        unfit = queue.counts().await.err();
        matches!(unfit, Some(CallError::ForeignVersion { .. } | CallError::TooOld { .. }))
    })
    .await;
    let back = async move || {
        proxy.redirect(server.port());
        proxy.sever();
        eventually("its own server is used again", async || queue.counts().await.is_ok()).await;
        client.reconnects() >= 2
    };
    (unfit.unwrap(), back)
}

#[tokio::test]
async fn a_server_that_is_too_old_after_a_reconnect_is_not_used_until_it_is_replaced() {
    let (error, mut back) = replaced_by(pretend("6.0.16").await).await;
    assert!(matches!(&error, CallError::TooOld { found } if found == "Redis 6.0.16"), "{error:?}");
    assert!(!error.is_transient() && error.to_string().contains("upgrade"), "{error}");
    assert!(back().await);
}

#[tokio::test]
async fn a_server_of_another_kind_after_a_reconnect_is_not_used_until_it_is_replaced() {
    let other = Server::start().await;
    Raw::connect(&other).await.line("SET {emq}:version bullmq:5.1.0").await;
    let (error, mut back) = replaced_by(other.port()).await;
    assert!(matches!(&error, CallError::ForeignVersion { found } if found == "bullmq:5.1.0"), "{error:?}");
    assert!(back().await);
    // Nothing was written to it.
    assert_eq!(Raw::connect(&other).await.line("DBSIZE").await.int(), 1);
}

#[tokio::test]
async fn a_server_that_is_busy_at_the_reconnect_is_asked_for_its_wire_until_it_says() {
    let server = Server::builder().config("lua-time-limit", "10").start().await;
    let proxy = Proxy::start(server.port());
    let client = impatient(&proxy.url()).retry_for(Duration::ZERO).connect().await.unwrap();
    let queue = client.queue("q").unwrap();
    Raw::connect(&server).await.line("SET {emq}:version echomq:4.0.0").await;
    let mut hog = Raw::connect(&server).await;
    hog.send(&["EVAL", "while true do end", "0"]).await.unwrap();
    eventually(
        "it is busy",
        async || matches!(queue.counts().await, Err(CallError::Refused { code, .. }) if code == "BUSY"),
    )
    .await;
    proxy.sever();
    eventually("it has reconnected", async || client.reconnects() >= 1).await;
    eventually(
        "it is busy still",
        async || matches!(queue.counts().await, Err(CallError::Refused { code, .. }) if code == "BUSY"),
    )
    .await;
    Raw::connect(&server).await.line("SCRIPT KILL").await;
    hog.receive().await.unwrap();
    eventually("the new wire is noticed", async || {
        matches!(queue.counts().await, Err(CallError::ForeignVersion { .. }))
    })
    .await;
}

#[tokio::test]
async fn a_server_that_was_emptied_is_claimed_again_at_the_reconnect() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let client = impatient(&proxy.url()).connect().await.unwrap();
    let mut raw = Raw::connect(&server).await;
    raw.line("FLUSHALL").await;
    proxy.sever();
    eventually("the version is there", async || raw.line("EXISTS {emq}:version").await.int() == 1).await;
    client.queue("q").unwrap().counts().await.unwrap();
}
