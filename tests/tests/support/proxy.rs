//! Each fault of the proxy, seen by a client and by the server itself.

use std::io::Read;
use std::time::{Duration, Instant};

use support::proxy::{When, any, named};
use support::{Proxy, Raw, Reply, Server};
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_millis(300);

/// A server, a proxy to it, and one connection around the proxy and one through it.
struct Scene {
    server: Server,
    proxy: Proxy,
    direct: Raw,
    through: Raw,
}

async fn scene() -> Scene {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let direct = Raw::connect(&server).await;
    let through = Raw::open(proxy.port()).await.unwrap();
    Scene { server, proxy, direct, through }
}

impl Scene {
    async fn count(&mut self) -> i64 {
        let reply = self.direct.command(&["GET", "n"]).await;
        if reply == Reply::Nil { 0 } else { reply.text().parse().unwrap() }
    }

    async fn reconnect(&mut self) {
        self.through = Raw::open(self.proxy.port()).await.unwrap();
    }
}

#[tokio::test]
async fn leads_new_connections_elsewhere_and_leaves_those_that_are_open() {
    let mut scene = scene().await;
    let other = Server::start().await;
    scene.proxy.redirect(other.port());
    scene.through.line("SET n 7").await;
    assert_eq!(scene.count().await, 7);
    scene.reconnect().await;
    assert_eq!(scene.through.line("EXISTS n").await.int(), 0, "it is another server");
}

#[tokio::test]
async fn passes_everything_on_without_faults() {
    let mut scene = scene().await;
    let value: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let set: [&[u8]; 3] = [b"SET", b"big", &value];
    assert_eq!(scene.through.command(&set).await.text(), "OK");
    assert_eq!(scene.through.command(&["GET", "big"]).await.bytes(), value);
    assert_eq!((scene.proxy.requests(), scene.proxy.cuts()), (2, 0));
    assert_eq!(scene.proxy.connections(), 1);
    assert_eq!(scene.proxy.url(), scene.server.url_at(scene.proxy.port()));
}

#[tokio::test]
async fn passes_on_a_request_that_is_a_line_of_words() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let scene = scene().await;
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", scene.proxy.port())).await.unwrap();
    stream.write_all(b"PING\r\n ECHO  you\r\n").await.unwrap();
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"+PONG\r\n$3\r\nyou\r\n");
    assert_eq!(scene.proxy.requests(), 2);
}

#[tokio::test]
async fn cut_reply_lets_the_server_execute() {
    let mut scene = scene().await;
    scene.proxy.cut_reply(named("incr"), When::Nth(2));
    assert_eq!(scene.through.line("INCR n").await.int(), 1);
    assert_eq!(scene.through.line("GET n").await.text(), "1");
    assert!(scene.through.try_command(&["INCR", "n"]).await.is_err());
    assert_eq!(scene.proxy.cuts(), 1);
    assert_eq!(scene.count().await, 2);

    scene.reconnect().await;
    assert_eq!(scene.through.line("INCR n").await.int(), 3);
    assert_eq!(scene.proxy.connections(), 2);
}

#[tokio::test]
async fn cut_request_keeps_it_from_the_server() {
    let mut scene = scene().await;
    scene.proxy.cut_request(|command| command.arg(1) == b"n", When::Once);
    scene.through.line("INCR other").await;
    assert!(scene.through.try_command(&["INCR", "n"]).await.is_err());
    assert_eq!(scene.proxy.cuts(), 1);
    assert_eq!(scene.count().await, 0);
}

#[tokio::test]
async fn every_second_reply_is_cut_until_cleared() {
    let mut scene = scene().await;
    scene.proxy.cut_reply(named("INCR"), When::Every(2));
    let mut failed = Vec::new();
    for call in 1..=6 {
        if scene.through.try_command(&["INCR", "n"]).await.is_err() {
            failed.push(call);
            scene.reconnect().await;
        }
    }
    assert_eq!(failed, [2, 4, 6]);
    assert_eq!(scene.count().await, 6);

    scene.proxy.clear();
    for _ in 0..4 {
        scene.through.line("INCR n").await;
    }
    assert_eq!(scene.proxy.cuts(), 3);
}

#[tokio::test]
async fn replies_before_the_cut_one_arrive() {
    let mut scene = scene().await;
    scene.proxy.cut_reply(|command| command.has("b"), When::Once);
    for key in ["a", "b", "c"] {
        scene.through.send(&["INCR", key]).await.unwrap();
    }
    assert_eq!(scene.through.receive().await.unwrap().int(), 1);
    assert!(scene.through.receive().await.is_err());
    assert_eq!(scene.direct.line("GET b").await.text(), "1");
}

#[tokio::test]
async fn messages_are_not_taken_for_replies() {
    let mut scene = scene().await;
    scene.through.line("HELLO 3").await;
    scene.through.line("SUBSCRIBE news").await;
    // The message comes while the reply is still to come.
    scene.proxy.cut_reply(named("BLPOP"), When::Once);
    scene.through.send(&["BLPOP", "list", "0"]).await.unwrap();
    while scene.direct.line("INFO clients").await.text().contains("blocked_clients:0") {}
    scene.direct.line("PUBLISH news 1").await;
    let message = scene.through.receive().await.unwrap();
    assert_eq!(message.to_string(), ">[\"message\", \"news\", \"1\"]");
    assert_eq!(scene.proxy.cuts(), 0);
    scene.direct.line("LPUSH list 1").await;
    assert!(scene.through.receive().await.is_err());
    assert_eq!(scene.proxy.cuts(), 1);
}

#[tokio::test]
async fn messages_of_the_old_protocol_are_not_either() {
    let mut scene = scene().await;
    scene.through.line("SUBSCRIBE news more").await;
    scene.through.receive().await.unwrap();
    // The message comes while the reply is still to come.
    scene.proxy.cut_reply(named("PING"), When::Once);
    scene.proxy.hold();
    scene.through.send(&["PING"]).await.unwrap();
    while scene.proxy.requests() < 2 {
        tokio::task::yield_now().await;
    }
    scene.direct.line("PUBLISH news 1").await;
    scene.proxy.heal();
    let message = scene.through.receive().await.unwrap();
    assert_eq!(message.to_string(), "[\"message\", \"news\", \"1\"]");
    assert!(scene.through.receive().await.is_err());
    assert_eq!(scene.proxy.cuts(), 1);
}

#[tokio::test]
async fn a_lost_reply_leaves_the_connection_open_and_silent() {
    let mut scene = scene().await;
    scene.proxy.lose_reply(named("INCR"), When::Once);
    scene.through.send(&["INCR", "n"]).await.unwrap();
    scene.proxy.wait_cuts(1).await;
    assert_eq!(scene.count().await, 1);
    scene.through.send(&["INCR", "n"]).await.unwrap();
    assert!(timeout(MOMENT, scene.through.receive()).await.is_err());
    assert_eq!(scene.count().await, 1);

    scene.reconnect().await;
    assert_eq!(scene.through.line("INCR n").await.int(), 2);
}

#[tokio::test]
async fn a_delay_counts_both_ways_and_not_per_request() {
    let mut scene = scene().await;
    scene.proxy.delay(Duration::from_millis(100));
    let start = Instant::now();
    for _ in 0..10 {
        scene.through.send(&["PING"]).await.unwrap();
    }
    for _ in 0..10 {
        assert_eq!(scene.through.receive().await.unwrap().text(), "PONG");
    }
    let taken = start.elapsed();
    assert!(taken >= Duration::from_millis(200), "{taken:?}");
    assert!(taken < Duration::from_millis(1000), "{taken:?}");
}

#[tokio::test]
async fn a_black_hole_swallows_and_healing_serves_new_connections() {
    let mut scene = scene().await;
    let mut idle = Raw::open(scene.proxy.port()).await.unwrap();
    idle.line("PING").await;
    scene.proxy.black_hole();
    scene.through.send(&["INCR", "n"]).await.unwrap();
    let mut newcomer = Raw::open(scene.proxy.port()).await.unwrap();
    newcomer.send(&["INCR", "n"]).await.unwrap();
    assert!(timeout(MOMENT, scene.through.receive()).await.is_err());

    scene.proxy.heal();
    assert!(timeout(MOMENT, scene.through.receive()).await.is_err());
    assert!(timeout(MOMENT, newcomer.receive()).await.is_err());
    assert_eq!(scene.count().await, 0);
    assert_eq!(idle.line("INCR n").await.int(), 1);
    scene.reconnect().await;
    assert_eq!(scene.through.line("INCR n").await.int(), 2);
}

#[tokio::test]
async fn a_black_hole_hides_the_end_of_the_server() {
    let mut scene = scene().await;
    scene.through.line("PING").await;
    scene.proxy.black_hole();
    scene.server.kill().await;
    assert!(timeout(MOMENT, scene.through.receive()).await.is_err());
    scene.proxy.sever();
    assert!(scene.through.receive().await.is_err());
}

#[tokio::test]
async fn what_is_held_arrives_after_healing() {
    let mut scene = scene().await;
    scene.proxy.hold();
    scene.through.send(&["INCR", "n"]).await.unwrap();
    assert!(timeout(MOMENT, scene.through.receive()).await.is_err());
    assert_eq!(scene.count().await, 0);
    scene.proxy.heal();
    assert_eq!(scene.through.receive().await.unwrap().int(), 1);
}

#[tokio::test]
async fn a_severed_connection_ends_and_a_new_one_works() {
    let mut scene = scene().await;
    scene.through.line("PING").await;
    scene.proxy.sever();
    assert!(scene.through.receive().await.is_err());
    scene.reconnect().await;
    scene.through.line("PING").await;

    scene.proxy.refuse();
    scene.reconnect().await;
    assert!(scene.through.try_command(&["PING"]).await.is_err());
    scene.proxy.clear();
    scene.reconnect().await;
    scene.through.line("PING").await;
}

#[tokio::test]
async fn the_end_of_the_server_is_the_end_of_the_connection() {
    let mut scene = scene().await;
    scene.through.line("PING").await;
    scene.server.kill().await;
    assert!(scene.through.receive().await.is_err());
}

#[tokio::test]
async fn a_client_that_leaves_at_once_still_has_its_request_passed_on() {
    let mut scene = scene().await;
    scene.proxy.delay(Duration::from_millis(50));
    scene.through.send(&["INCR", "n"]).await.unwrap();
    drop(std::mem::replace(&mut scene.through, Raw::open(scene.proxy.port()).await.unwrap()));
    let deadline = Instant::now() + Duration::from_secs(10);
    while scene.count().await == 0 {
        assert!(Instant::now() < deadline, "the request was lost");
    }
}

#[tokio::test]
async fn a_chopped_reply_comes_in_many_pieces_and_whole() {
    let mut scene = scene().await;
    let value = "x".repeat(2000);
    scene.direct.command(&["SET", "a", &value]).await;
    scene.proxy.chop();
    assert_eq!(scene.through.line("GET a").await.text(), value);

    // A thread of its own reads while the bytes arrive.
    let port = scene.proxy.port();
    let pieces = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        std::io::Write::write_all(&mut stream, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n").unwrap();
        let (mut length, mut pieces, mut chunk) = (0, 0, [0; 4096]);
        while length < 2000 + "$2000\r\n\r\n".len() {
            length += stream.read(&mut chunk).unwrap();
            pieces += 1;
        }
        pieces
    });
    let pieces = pieces.await.unwrap();
    assert!(pieces > 1, "{pieces}");
}

#[tokio::test]
async fn a_dropped_proxy_closes_everything() {
    let Scene { server: _server, proxy, mut through, .. } = scene().await;
    through.line("PING").await;
    let port = proxy.port();
    proxy.cut_reply(any(), When::Once);
    drop(proxy);
    assert!(through.receive().await.is_err());
    assert!(Raw::open(port).await.is_err());
}
