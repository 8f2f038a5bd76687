//! A private server: its life, its options, and its end in every case.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::{Clock, Raw, Server, child, event, in_role};

#[tokio::test]
async fn starts_answers_and_leaves_nothing_behind() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    assert_eq!(raw.line("PING").await.text(), "PONG");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    let info = server.info("server").await;
    assert_eq!(info["process_id"], server.pid().to_string());

    let (port, folder) = (server.port(), server.folder().to_owned());
    drop(server);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!folder.exists());
}

#[tokio::test]
async fn listens_on_the_loopback_interface_alone() {
    let server = Server::start().await;
    let reply = Raw::connect(&server).await.line("CONFIG GET bind").await;
    assert_eq!(reply.items()[1].text(), "127.0.0.1");
}

#[tokio::test]
async fn its_clock_can_be_moved() {
    let Some(clock) = Clock::new() else {
        eprintln!("left out: a clock can't be moved here");
        return;
    };
    let server = Server::builder().clock(&clock).start().await;
    let mut raw = Raw::connect(&server).await;
    let mut time = async || raw.line("TIME").await.items()[0].text().parse::<i64>().unwrap();
    let began = time().await;
    let mut off_by = Vec::new();
    for seconds in [0, -3_600, 5_400] {
        clock.jump(seconds);
        // In half hours, of which this test takes none.
        off_by.push((time().await - began + 900).div_euclid(1_800));
    }
    assert!(off_by == [0, -2, 1] || off_by == [0, 0, 0], "{off_by:?}; a server with a C library of its own goes right");
}

#[tokio::test]
async fn two_servers_are_two() {
    let (one, two) = (Server::start().await, Server::start().await);
    Raw::connect(&one).await.line("SET a 1").await;
    let there = Raw::connect(&two).await.line("EXISTS a").await;
    assert_eq!(there.int(), 0);
}

#[tokio::test]
async fn all_tests_share_one() {
    assert_eq!(support::server().await.port(), support::server().await.port());
    let mut raw = Raw::connect(support::server().await).await;
    assert_eq!(raw.line("PING").await.text(), "PONG");
}

#[tokio::test]
async fn a_killed_server_is_gone_and_comes_back_with_its_log_of_writes() {
    let server = Server::builder().append_only(true).start().await;
    let (port, pid) = (server.port(), server.pid());
    Raw::connect(&server).await.line("SET a 1").await;

    server.kill().await;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    server.restart().await;

    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    let reply = Raw::connect(&server).await.line("GET a").await;
    assert_eq!(reply.text(), "1");
}

#[tokio::test]
async fn without_a_log_of_writes_a_restart_loses_all() {
    let server = Server::start().await;
    Raw::connect(&server).await.line("SET a 1").await;
    server.restart().await;
    let reply = Raw::connect(&server).await.line("EXISTS a").await;
    assert_eq!(reply.int(), 0);
}

#[tokio::test]
async fn a_frozen_server_is_silent_until_thawed() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.line("PING").await;

    server.freeze();
    raw.send(&["PING"]).await.unwrap();
    let silence = tokio::time::timeout(Duration::from_millis(200), raw.receive()).await;
    assert!(silence.is_err(), "{silence:?}");

    server.thaw();
    assert_eq!(raw.receive().await.unwrap().text(), "PONG");
}

#[tokio::test]
async fn a_frozen_server_can_be_stopped() {
    let server = Server::start().await;
    server.freeze();
    server.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
}

#[tokio::test]
async fn options_reach_the_server() {
    let server = Server::builder()
        .config("maxmemory", "64mb")
        .config("client-output-buffer-limit", "pubsub 1mb 1mb 1")
        .unix_socket()
        .password("a b")
        .user("alice on >secret ~* +@all")
        .start()
        .await;
    let mut raw = Raw::connect(&server).await;
    let reply = raw.line("CONFIG GET maxmemory").await;
    assert_eq!(reply.items()[1].text(), (64 << 20).to_string());
    let reply = raw.command(&["AUTH", "alice", "secret"]).await;
    assert_eq!(reply.text(), "OK");
    assert!(server.unix_socket().exists());
    assert_eq!(server.info("memory").await["maxmemory"], (64 << 20).to_string());

    let mut stranger = Raw::open(server.port()).await.unwrap();
    assert!(stranger.command(&["PING"]).await.is_error());
}

#[tokio::test]
async fn a_replica_follows() {
    let primary = Server::builder().password("secret").start().await;
    let replica = Server::builder().replica_of(&primary).start().await;
    let mut raw = Raw::connect(&primary).await;
    let mut copy = Raw::connect(&replica).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    while raw.line("WAIT 1 1000").await.int() != 1 {
        assert!(Instant::now() < deadline, "no replica");
    }
    raw.line("SET a 1").await;
    assert_eq!(raw.line("WAIT 1 10000").await.int(), 1);
    assert_eq!(copy.line("GET a").await.text(), "1");
}

#[tokio::test]
#[should_panic(expected = "no-such-option")]
async fn a_server_that_does_not_start_says_why() {
    Server::builder().config("no-such-option", "1").start().await;
}

/// Starts a server, and then dies in the way that the test asks for.
#[tokio::test]
async fn server_owner_main() {
    if !in_role("server::server_owner_main") {
        return;
    }
    let server = support::server().await;
    event(&format!("port {}", server.port()));
    event(&format!("folder {}", server.folder().display()));
    if std::env::var("EMQ_TEST_STAY").is_ok() {
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn no_server_outlives_a_test_process_that_is_killed() {
    let mut owner = child("server::server_owner_main", &[("EMQ_TEST_STAY", "1")]);
    let port = owner.wait_line("port").await.parse().unwrap();
    let folder = PathBuf::from(owner.wait_line("folder").await);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    owner.kill().await;
    assert_vanishes(port, &folder).await;
}

#[tokio::test]
async fn no_server_outlives_a_test_process_that_ends() {
    let mut owner = child("server::server_owner_main", &[]);
    let port = owner.wait_line("port").await.parse().unwrap();
    let folder = PathBuf::from(owner.wait_line("folder").await);
    assert!(owner.wait().await.is_success());
    assert_vanishes(port, &folder).await;
}

async fn assert_vanishes(port: u16, folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_ok() || folder.exists() {
        assert!(Instant::now() < deadline, "a server is left on port {port}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Panics while it owns a server.
#[tokio::test]
async fn panicking_owner_main() {
    if !in_role("server::panicking_owner_main") {
        return;
    }
    let server = Server::start().await;
    event(&format!("folder {}", server.folder().display()));
    panic!("on purpose");
}

#[tokio::test]
async fn a_panic_keeps_the_log() {
    let mut owner = child("server::panicking_owner_main", &[("RUST_BACKTRACE", "0")]);
    let folder = PathBuf::from(owner.wait_line("folder").await);
    assert!(!owner.wait().await.is_success());
    let log = std::fs::read_to_string(folder.join("server.log")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(log.contains("Ready to accept connections"), "{log}");
}
