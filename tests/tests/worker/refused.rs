//! A server that is there and refuses for a while. The worker waits, and goes on by itself: nothing is lost, and nothing
//! runs twice.

use std::time::{Duration, Instant};

use emq::{CallError, Client, Completion, EnqueueError, JobContext};
use support::{Proxy, Raw, Server};
use tokio::sync::watch;

use crate::errand::{Does, Errand, PATIENCE, Place, Running, Told, ms, start, telling, tells};

const JOBS: u64 = 30;
const AT_ONCE: usize = 4;

/// A worker with its hands full: those jobs end when the test says so, and more wait.
struct Shift {
    place: Place,
    worker: Running,
    began: Told<(u64, u64)>,
    go: watch::Sender<bool>,
}

impl Shift {
    /// By a client that makes its calls for long enough.
    async fn begin(server: &Server, url: &str, label: &str) -> Self {
        let client = Client::builder(url).command_timeout(ms(1_000)).connect().await.unwrap();
        let place = Place::of(server, client, label);
        let (tell, began) = telling();
        let (go, may_go) = watch::channel(false);
        let does = Does::new(move |n, ctx: JobContext| {
            tell.tell((n, ctx.fence()));
            let mut may_go = may_go.clone();
            async move {
                // An error means that the test is over.
                let _ = may_go.wait_for(|go| *go).await;
                Ok(Completion::empty())
            }
        });
        place.enqueue(JOBS).await;
        let worker = start(place.worker(does).concurrency(AT_ONCE).lease(ms(20_000)).beat(ms(100)));
        let mut shift = Self { place, worker, began, go };
        for n in 0..AT_ONCE as u64 {
            assert_eq!(shift.began.next().await, (n, 1));
        }
        shift
    }

    /// Lets the jobs end, now and from now on.
    fn go(&self) {
        self.go.send_replace(true);
    }

    /// The end of all: each job ran once and is done.
    async fn ends_well(mut self, near: &Server) {
        let queue = Client::connect(near.url()).await.unwrap().queue(self.place.name()).unwrap();
        self.place.until(async || queue.counts().await.is_ok_and(|counts| counts.completed == JOBS)).await;
        let stats = self.worker.stop().await;
        assert_eq!((stats.completed, stats.lost, stats.stale, stats.unsettled), (JOBS, 0, 0, 0));
        let rest = self.began.rest();
        assert!(rest.iter().all(|(_, fence)| *fence == 1), "none ran twice: {rest:?}");
        assert_eq!(rest.len(), JOBS as usize - AT_ONCE);
    }
}

/// A client whose calls are made once.
async fn once(server: &Server) -> Client {
    Client::builder(server.url()).node(1).command_timeout(ms(500)).retry_for(Duration::ZERO).connect().await.unwrap()
}

/// How many clients are connected, with the one that asks.
async fn connections(server: &Server) -> usize {
    Raw::connect(server).await.line("CLIENT LIST").await.text().lines().count()
}

/// Waits until an enqueue is refused with this word, by the server and not by chance.
async fn is_refused(place: &Place, client: &Client, code: &str) -> CallError {
    let queue = client.queue(place.name()).unwrap();
    let start = Instant::now();
    loop {
        let error = queue.enqueue(Errand { n: 1_000 }).unique("refused").await.expect_err("it takes no job");
        let EnqueueError::Call { source, .. } = error else { panic!("{error:?}") };
        if matches!(&source, CallError::Refused { code: word, .. } if word == code) {
            return source;
        }
        assert!(start.elapsed() < PATIENCE, "{source:?}");
    }
}

/// Waits until the server has refused so many more calls with this word.
async fn refusals(raw: &mut Raw, code: &str, more: u64) {
    let mut refused = async || -> u64 {
        let info = raw.line("INFO errorstats").await;
        let count = info.text().lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
        count.unwrap_or("0").trim().parse().unwrap()
    };
    let (before, start) = (refused().await, Instant::now());
    while refused().await < before + more {
        assert!(start.elapsed() < PATIENCE, "it tries again and again");
        tokio::time::sleep(ms(10)).await;
    }
}

#[tokio::test]
async fn a_script_that_holds_the_server_only_delays() {
    let server = Server::builder().config("lua-time-limit", "10").start().await;
    let shift = Shift::begin(&server, &server.url(), "busy").await;
    let client = once(&server).await;
    let mut hog = shift.place.raw().await;
    hog.send(&["EVAL", "while true do end", "0"]).await.unwrap();
    let queue = client.queue(shift.place.name()).unwrap();
    shift.place.until(async || matches!(queue.counts().await, Err(CallError::Refused { .. }))).await;
    shift.go();
    let error = is_refused(&shift.place, &client, "BUSY").await;
    assert!(error.is_transient() && error.to_string().contains("SCRIPT KILL"), "{error}");
    // It takes no questions now: long enough for each settling to be refused several times.
    tokio::time::sleep(ms(700)).await;
    assert_eq!(shift.worker.stats().in_hand, AT_ONCE as u64, "what has ended waits to be settled");
    shift.place.raw().await.line("SCRIPT KILL").await;
    assert!(hog.receive().await.unwrap().is_error());
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn without_enough_replicas_nothing_is_written_and_when_they_are_there_it_goes_on() {
    let server = Server::start().await;
    let shift = Shift::begin(&server, &server.url(), "replicas").await;
    let client = once(&server).await;
    let mut raw = shift.place.raw().await;
    raw.line("CONFIG SET min-replicas-to-write 1").await;
    let before = shift.place.dump().await;
    let error = is_refused(&shift.place, &client, "NOREPLICAS").await;
    assert!(error.is_transient() && error.to_string().contains("min-replicas-to-write"), "{error}");
    shift.go();
    refusals(&mut raw, "NOREPLICAS", 30).await;
    assert_eq!(shift.place.dump().await, before, "nothing was written");
    assert_eq!(shift.worker.stats().in_hand, AT_ONCE as u64);
    raw.line("CONFIG SET min-replicas-to-write 0").await;
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn a_demotion_only_delays() {
    let server = Server::start().await;
    let shift = Shift::begin(&server, &server.url(), "demoted").await;
    let client = once(&server).await;
    let mut raw = shift.place.raw().await;
    // Of a primary that isn't there: it keeps what it has.
    raw.line("REPLICAOF 127.0.0.1 1").await;
    let before = shift.place.dump().await;
    let error = is_refused(&shift.place, &client, "READONLY").await;
    assert!(error.is_transient() && error.to_string().contains("replica"), "{error}");
    shift.go();
    refusals(&mut raw, "READONLY", 30).await;
    assert_eq!(shift.place.dump().await, before, "nothing was written");
    raw.line("REPLICAOF NO ONE").await;
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn a_worker_of_a_demoted_server_follows_its_name_to_the_new_primary() {
    let old = Server::start().await;
    let name = Proxy::start(old.port());
    let shift = Shift::begin(&old, &name.url(), "moved").await;
    let new = Server::builder().replica_of(&old).start().await;
    let mut raw = Raw::connect(&new).await;
    shift.place.until(async || new.info("replication").await["master_link_status"] == "up").await;
    raw.line("REPLICAOF NO ONE").await;
    Raw::connect(&old).await.line(&format!("REPLICAOF 127.0.0.1 {}", new.port())).await;
    // The name leads to the new primary. The old one has kept its connections.
    name.redirect(new.port());
    shift.go();
    shift.ends_well(&new).await;
}

#[tokio::test]
async fn a_server_that_loads_its_data_only_delays() {
    // It takes 20 ms for each key, and looks at its clients after each kilobyte.
    let slow = Server::builder().config("key-load-delay", "20000").config("rdbcompression", "no");
    let server = slow.config("loading-process-events-interval-bytes", "1024").start().await;
    let shift = Shift::begin(&server, &server.url(), "loading").await;
    let client = once(&server).await;
    let mut raw = shift.place.raw().await;
    for n in 0..80 {
        raw.line(&format!("SET filler:{n} {}", "x".repeat(1_024))).await;
    }
    raw.line("SAVE").await;
    server.kill().await;
    shift.go();
    let loaded = async {
        server.restart().await;
        Instant::now()
    };
    let refused = async {
        let error = is_refused(&shift.place, &client, "LOADING").await;
        let connecting = Client::connect(server.url()).await.unwrap_err();
        (error, connecting, Instant::now())
    };
    let (loaded, (error, connecting, refused)) = tokio::join!(loaded, refused);
    assert!(refused < loaded, "both saw it load");
    assert!(error.is_transient() && error.to_string().contains("has read its data"), "{error}");
    assert!(connecting.to_string().contains("has read its data"), "{connecting}");
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn a_server_without_room_for_a_connection_only_delays() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let shift = Shift::begin(&server, &proxy.url(), "full").await;
    let mut raw = shift.place.raw().await;
    proxy.refuse();
    proxy.sever();
    // What is left is the test's own.
    shift.place.until(async || connections(&server).await == 2).await;
    raw.line("CONFIG SET maxclients 1").await;
    proxy.clear();
    shift.go();
    let rejected = async |raw: &mut Raw| -> u64 {
        let info = raw.line("INFO stats").await;
        let line = info.text().lines().find_map(|line| line.strip_prefix("rejected_connections:")).unwrap();
        line.trim().parse().unwrap()
    };
    let start = Instant::now();
    while rejected(&mut raw).await < 10 {
        assert!(start.elapsed() < PATIENCE, "it tries again and again");
        tokio::time::sleep(ms(10)).await;
    }
    raw.line("CONFIG SET maxclients 10000").await;
    shift.ends_well(&server).await;
}

/// How many connections an idle worker opens while its server refuses in this way for a while; it goes on after that.
async fn connections_opened(refuse: &str, accept: &str) -> u64 {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "idle").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(100)));
    place.errand(0).await.unwrap();
    assert_eq!(told.next().await, 0);
    place.waited_for(1).await;
    let before = proxy.connections();
    let mut raw = place.raw().await;
    raw.line(refuse).await;
    // The wait under way had been accepted, and the next one won't be.
    if let Some(id) = waiting(&mut raw).await {
        raw.line(&format!("CLIENT UNBLOCK {id}")).await;
    }
    tokio::time::sleep(ms(1_500)).await;
    let opened = proxy.connections() - before;
    raw.line(accept).await;
    place.until(async || place.errand(1).await.is_ok()).await;
    assert_eq!(told.next().await, 1);
    worker.stop().await;
    opened
}

/// The client that waits for a queue.
async fn waiting(raw: &mut Raw) -> Option<String> {
    let list = raw.line("CLIENT LIST").await;
    let line = list.text().lines().find(|line| line.contains("flags=b"))?.to_owned();
    Some(line.split_once("id=")?.1.split_once(' ')?.0.to_owned())
}

#[tokio::test]
async fn a_refusal_costs_no_connection() {
    let (refuse, accept) = ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0");
    assert_eq!(connections_opened(refuse, accept).await, 0);
}

#[tokio::test]
async fn a_replica_is_asked_for_its_primary_now_and_then() {
    let opened = connections_opened("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE").await;
    // Two of the worker's connections, once each in 2 s.
    assert!((1..=4).contains(&opened), "{opened}");
}
