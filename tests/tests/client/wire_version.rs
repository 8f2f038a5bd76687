//! Who speaks which wire.

use emq::{CallError, Client, ConnectError};
use support::{Proxy, Raw, Server};

use crate::common::{eventually, impatient};

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
