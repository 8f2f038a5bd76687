//! A user with no more rights than the document asks for.

use std::time::Duration;

use emq::{CallError, Client, Completion, Keep, Place, Queue, Removed, Revived, Settled};
use support::Server;

use crate::common::{MINUTE, Work, impatient};

/// The rule in the document, as a line of a server's configuration.
fn documented() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/keys.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rule = text.lines().find_map(|line| line.strip_prefix("ACL SETUSER ")).expect("a rule to copy");
    rule.to_owned()
}

/// Every verb, once.
async fn everything(queue: &Queue) -> Result<(), CallError> {
    let mut claimer = queue.claimer("w");
    for n in 0..6 {
        queue.enqueue(Work { n }).unique(format!("k{n}")).await.unwrap();
    }
    queue.enqueue(Work { n: 9 }).delay(Duration::from_millis(1)).durable(0, MINUTE).await.unwrap();
    while queue.promote().await?.count == 0 {}
    let jobs = claimer.claim(10).await?.jobs;
    let leases: Vec<_> = jobs.iter().map(|job| job.lease).collect();
    assert_eq!(leases.len(), 7);
    queue.extend(&leases, MINUTE).await?;
    assert_eq!(queue.complete(&leases[0], Completion::of("x").unwrap()).await?, Settled::Accepted);
    assert_eq!(queue.retry(&leases[1], MINUTE, "no").await?, Settled::Accepted);
    assert_eq!(queue.bury(&leases[2], "no").await?, Settled::Accepted);
    assert_eq!(queue.bury(&leases[3], "no").await?, Settled::Accepted);
    assert_eq!(queue.snooze(&leases[4], MINUTE).await?, Settled::Accepted);
    assert_eq!(queue.release(&leases[5]).await?, Settled::Accepted);
    queue.extend(&leases[6..], Duration::from_millis(1)).await?;
    while queue.reap(Some(1)).await?.dead.is_empty() {}
    assert_eq!(queue.revive(leases[2].id()).await?, Revived::Revived);
    assert_eq!(queue.remove(leases[3].id()).await?, Removed::Removed);
    queue.trim(Keep { count: 0, ..Keep::default() }).await?;
    queue.get(leases[0].id()).await?.unwrap();
    queue.state(leases[0].id()).await?.unwrap();
    queue.list(Place::Pending, 0, 10).await?;
    let counts = queue.counts().await?;
    assert_eq!((counts.pending, counts.scheduled, counts.active, counts.completed), (2, 2, 0, 1));
    claimer.leave().await
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let server = Server::builder().user(&documented()).start().await;
    let client = Client::builder(server.url()).credentials("emq", "secret").connect().await.unwrap();
    everything(&client.queue("q").unwrap()).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn without_the_right_to_publish_everything_but_the_events_works() {
    let rule = documented().replace(" &emq:*", "").replace(" +publish", "");
    assert_ne!(rule, documented());
    let server = Server::builder().user(&rule).start().await;
    let client = Client::builder(server.url()).credentials("emq", "secret").connect().await.unwrap();
    everything(&client.queue("q").unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_user_of_other_keys_is_refused_with_a_hint() {
    let server = Server::builder().user("other on >secret ~other:* ~{emq}:* &* +@all").start().await;
    let client = impatient(&server.url()).credentials("other", "secret").connect().await.unwrap();
    let error = client.queue("q").unwrap().counts().await.unwrap_err();
    assert!(matches!(&error, CallError::Refused { code, .. } if code == "NOPERM"), "{error:?}");
    assert!(error.to_string().contains("docs/keys.md"), "{error}");
}

#[tokio::test]
async fn a_user_without_scripts_is_refused_with_a_hint() {
    let server = Server::builder().user("other on >secret ~* &* +@all -eval -evalsha").start().await;
    let error = Client::builder(server.url()).credentials("other", "secret").connect().await.unwrap_err();
    assert!(error.to_string().contains("the user needs EVAL"), "{error}");
}
