use emq::Client;
use support::Raw;

use crate::scene::{Work, scene};

/// A client that divides the scene's queue.
async fn dividing(name: &str, partitions: u16) -> Client {
    Client::builder(support::server().await.url()).partitioned(name, partitions).connect().await.unwrap()
}

#[tokio::test]
async fn how_many_partitions_there_ever_were_is_written_before_the_first_job_and_only_grows() {
    let mut scene = scene("partitions").await;
    let name = scene.queue.name().to_string();
    for (partitions, ever) in [(1, None), (4, Some("4")), (2, Some("4")), (9, Some("9"))] {
        dividing(&name, partitions).await.enqueue(Work { n: 1 }).queue(&name).await.unwrap();
        let meta = format!("emq:{{{name}}}:meta");
        assert_eq!(scene.dump().await.get(&meta, "partitions"), ever, "after {partitions}");
    }
}

#[tokio::test]
async fn a_look_writes_nothing() {
    let mut scene = scene("partitions").await;
    let name = scene.queue.name().to_string();
    let client = dividing(&name, 7).await;
    let queue = client.partitioned(&name).unwrap();
    let look = async { queue.partitions().await.unwrap().len() };
    let (count, changes) = scene.changes(look).await;
    assert_eq!((count, changes), (7, Vec::<String>::new()));
}

#[tokio::test]
async fn a_number_that_somebody_has_tampered_with_harms_nobody() {
    let mut scene = scene("partitions").await;
    let name = scene.queue.name().to_string();
    let client = Client::connect(support::server().await.url()).await.unwrap();
    let queue = client.partitioned(&name).unwrap();
    for (text, count) in
        [("many", 1), ("-3", 1), ("0", 1), ("2.5", 2), ("3", 3), ("1e9", 256), ("99999999999999999999", 1)]
    {
        scene.command(&format!("HSET @meta partitions {text}")).await;
        assert_eq!(queue.partitions().await.unwrap().len(), count, "{text}");
    }
}

#[tokio::test]
async fn a_server_that_has_lost_the_number_is_told_again() {
    let server = support::Server::start().await;
    let client = Client::builder(server.url()).partitioned("mail", 3).connect().await.unwrap();
    client.enqueue(Work { n: 1 }).queue("mail").await.unwrap();
    let mut raw = Raw::connect(&server).await;
    raw.line("FLUSHALL").await;
    // It isn't asked for each job, but again and again.
    while raw.line("HEXISTS emq:{mail}:meta partitions").await.int() == 0 {
        client.enqueue(Work { n: 1 }).queue("mail").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(raw.line("HGET emq:{mail}:meta partitions").await.text(), "3");
}
