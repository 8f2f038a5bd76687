//! The connection on which an idle worker waits, when it breaks under the wait. A worker that waits in vain would notice
//! no job.

use std::time::{Duration, Instant};

use emq::{Completion, JobContext};
use support::{
    Proxy, Raw, Server,
    proxy::{When, named},
};

use crate::errand::{Does, Place, ms, start, telling, tells};

/// The client that waits for a queue on this server.
async fn waiting(raw: &mut Raw) -> Option<String> {
    let list = raw.line("CLIENT LIST").await;
    let line = list.text().lines().find(|line| line.contains("flags=b"))?.to_owned();
    Some(line.split_once("id=")?.1.split_once(' ')?.0.to_owned())
}

#[tokio::test]
async fn a_wait_that_is_killed_is_begun_again() {
    let server = Server::start().await;
    let place = Place::on(&server, "killed").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    let mut raw = place.raw().await;
    for n in 0..3 {
        place.waited_for(1).await;
        let id = waiting(&mut raw).await.unwrap();
        raw.line(&format!("CLIENT KILL ID {id}")).await;
        // At once in one case, and into the new wait in another.
        if n == 1 {
            place.until(async || waiting(&mut place.raw().await).await.is_some_and(|next| next != id)).await;
        }
        let killed = Instant::now();
        place.errand(n).await.unwrap();
        assert_eq!(told.next().await, n);
        // Long before it would look by itself.
        assert!(killed.elapsed() < ms(4_000), "{:?}", killed.elapsed());
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_wait_that_is_never_answered_is_given_up_and_begun_again() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "mute").await;
    let (tell, mut told) = telling();
    proxy.lose_reply(named("BZPOPMIN"), When::Once);
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    place.waited_for(1).await;
    let (enqueued, reconnects) = (Instant::now(), worker.stats().reconnects);
    place.errand(0).await.unwrap();
    proxy.wait_cuts(1).await;
    assert_eq!(told.next().await, 0);
    // Its 7.5 s on the server and the 2 s of patience after them.
    assert!(enqueued.elapsed() < ms(15_000), "{:?}", enqueued.elapsed());
    place.completed(1).await;
    // From then on it wakes as before.
    place.until(async || worker.stats().reconnects > reconnects).await;
    place.waited_for(1).await;
    let again = Instant::now();
    place.errand(1).await.unwrap();
    assert_eq!(told.next().await, 1);
    assert!(again.elapsed() < ms(4_000), "{:?}", again.elapsed());
    worker.stop().await;
}

#[tokio::test]
async fn a_server_that_closes_idle_connections_costs_nothing() {
    let server = Server::builder().config("timeout", "1").start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "closed").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.fence()));
        async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(Completion::empty())
        }
    });
    // So seldom that its connections are idle: the client's, and that of the leases.
    let worker = start(place.worker(does).lease(ms(1_500)).beat(ms(60_000)));
    place.waited_for(1).await;
    let connections = proxy.connections();
    // Each was closed, and made anew.
    place.until(async || proxy.connections() >= connections + 2).await;
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, (7, 1));
    place.completed(1).await;
    assert_eq!(worker.stop().await.lost, 0, "its lease was renewed");
    assert!(told.rest().is_empty());
}
