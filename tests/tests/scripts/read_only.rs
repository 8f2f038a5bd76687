//! A replica takes no writes: a typed error in bounded time, and nothing else.

use std::time::Duration;

use emq::{CallError, Client, Completion, ConnectError, EnqueueError};
use support::Server;

use crate::scene::{MINUTE, Scene, Work};

fn is_read_only(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code, .. } if code == "READONLY") && error.to_string().contains("Sentinel")
}

#[tokio::test]
async fn every_write_is_a_typed_error_and_every_look_works() {
    let primary = Server::start().await;
    let mut scene = Scene::on(&primary, "replica").await;
    let lease = scene.claimed().await;
    let replica = Server::builder().replica_of(&primary).start().await;
    let mut raw = support::Raw::connect(&replica).await;
    let key = format!("emq:{{{}}}:active", scene.queue.name());
    // The copy is under way.
    while raw.command(&["ZCARD", &key]).await != support::Reply::Int(1) {
        tokio::task::yield_now().await;
    }

    let builder = Client::builder(replica.url()).retry_for(Duration::from_millis(50));
    let error = builder.connect().await.unwrap_err();
    assert!(matches!(&error, ConnectError::Call(call) if is_read_only(call)), "{error}");

    // A client that needs no number of its own gets in, since a replica may become the primary.
    let builder = Client::builder(replica.url()).retry_for(Duration::from_millis(50)).node(1);
    let queue = builder.connect().await.unwrap().queue(scene.queue.name().as_str()).unwrap();
    let error = queue.enqueue(Work { n: 0 }).await.unwrap_err();
    assert!(matches!(&error, EnqueueError::Call { source, .. } if is_read_only(source)), "{error}");
    assert!(is_read_only(&queue.complete(&lease, Completion::empty()).await.unwrap_err()));
    assert!(is_read_only(&queue.retry(&lease, MINUTE, "no").await.unwrap_err()));
    assert!(is_read_only(&queue.release(&lease).await.unwrap_err()));
    assert!(is_read_only(&queue.extend(&[lease], MINUTE).await.unwrap_err()));
    assert_eq!(queue.counts().await.unwrap().active, 1);
    assert_eq!(queue.get(lease.id()).await.unwrap().unwrap().attempts, 1);
}
