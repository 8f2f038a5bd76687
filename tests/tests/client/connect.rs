//! Every way to get in, and every way not to.

use std::time::{Duration, Instant};

use emq::{CallError, Client, ConnectError};
use support::{Raw, Reply, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{BOUNDED, Work, eventually, impatient};

#[tokio::test]
async fn a_url_that_cannot_be_one_is_named_and_shown_how_to_write() {
    for url in [
        "",
        "localhost",
        "mailto:somebody",
        "http://localhost:6379",
        "redis://",
        "redis://host:port",
        "redis:",
        "unix:",
        "unix://",
    ] {
        let error = Client::connect(url).await.unwrap_err();
        assert!(matches!(error, ConnectError::Url { .. }), "{url:?}: {error:?}");
        assert!(error.to_string().contains("redis://host:6379"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_in_bounded_time() {
    let server = Server::start().await;
    server.stop().await;
    let began = Instant::now();
    let error = impatient(&server.url()).connect().await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
    assert!(error.to_string().contains("check that it runs"), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_an_error_in_bounded_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let error = impatient(&url).connect_timeout(Duration::from_secs(1)).connect().await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
    assert!(began.elapsed() < BOUNDED, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_without_room_for_a_connection_is_named() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.line("CONFIG SET maxclients 1").await;
    for _ in 0..20 {
        let error = impatient(&server.url()).connect().await.unwrap_err();
        let ConnectError::Full { server: address, .. } = &error else { panic!("{error:?}") };
        assert_eq!(address, &format!("127.0.0.1:{}", server.port()));
        assert!(error.to_string().contains("raise its maxclients"), "{error}");
    }
    raw.line("CONFIG SET maxclients 100").await;
    impatient(&server.url()).connect().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_busy_when_a_client_connects_says_so() {
    let server = Server::builder().config("lua-time-limit", "10").start().await;
    let mut hog = Raw::connect(&server).await;
    hog.send(&["EVAL", "while true do end", "0"]).await.unwrap();
    // Nobody is answered before the script has run for as long as it may.
    eventually("it is busy", async || {
        let connected = impatient(&server.url()).connect().await;
        matches!(connected, Err(ConnectError::Call(CallError::Refused { code, .. })) if code == "BUSY")
    })
    .await;
    Raw::connect(&server).await.line("SCRIPT KILL").await;
    hog.receive().await.unwrap();
    impatient(&server.url()).connect().await.unwrap();
}

#[tokio::test]
async fn a_password_gets_in_by_url_and_by_setting_and_a_wrong_one_does_not() {
    let server = Server::builder().password("s3cret").start().await;
    Client::connect(server.url()).await.unwrap();
    let bare = format!("redis://127.0.0.1:{}", server.port());
    Client::builder(&bare).credentials("default", "s3cret").connect().await.unwrap();

    for builder in [impatient(&bare).credentials("default", "wr0ng"), impatient(&bare).credentials("nobody", "s3cret")]
    {
        let error = builder.connect().await.unwrap_err();
        assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("wr0ng") && !text.contains("s3cret"), "{text}");
    }
    let error = impatient(&bare).connect().await.unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "no password at all: {error:?}");
}

#[tokio::test]
async fn a_user_and_a_password_of_any_bytes_get_in() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    for odd in ["two words", " ", "\"", "'", "\\", "\\x41", "a\tb", "line\r\nPING", "Ω🦀", "#!$%&/()=?@:"] {
        // A name has no blanks; a password may.
        let user = odd.replace(char::is_whitespace, "_");
        let made = raw.command(&["ACL", "SETUSER", &user, "on", "~*", "&*", "+@all", &format!(">{odd}")]).await;
        assert!(!made.is_error(), "{odd:?}: {made}");
        let client = impatient(&server.url()).credentials(&user, odd).connect().await;
        client.unwrap_or_else(|error| panic!("{odd:?}: {error}"));
    }
}

#[tokio::test]
async fn a_user_or_a_password_of_any_bytes_is_denied_and_breaks_nothing() {
    let server = Server::builder().password("s3cret").start().await;
    let bare = format!("redis://127.0.0.1:{}", server.port());
    let huge = "p".repeat(100_000);
    for odd in ["", " ", "\0", "\r\nFLUSHALL\r\n", "\"'", "\\x41", "Ω 🦀", "%zz", "s3cret SETNAME x"] {
        for (user, password) in [("default", odd), (odd, "s3cret")] {
            let error = impatient(&bare).credentials(user, password).connect().await.unwrap_err();
            assert!(matches!(error, ConnectError::Denied { .. }), "{odd:?} {error:?}");
        }
    }
    let error = impatient(&bare).credentials("default", huge).connect().await.unwrap_err();
    // The server doesn't read it to its end, and may close before it has said why.
    let refused = matches!(&error, ConnectError::Call(CallError::Refused { .. }) | ConnectError::Denied { .. });
    assert!(refused || matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
    Client::connect(server.url()).await.unwrap();
}

#[tokio::test]
async fn no_secret_is_shown() {
    let builder = Client::builder("redis://user:hunter2@127.0.0.1:1").credentials("user", "hunter2");
    assert!(!format!("{builder:?}").contains("hunter2"), "{builder:?}");
    let server = Server::builder().password("hunter2").start().await;
    let client = Client::connect(server.url()).await.unwrap();
    let queue = client.queue("q").unwrap();
    assert!(!format!("{client:?} {queue:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_unix_socket_by_either_spelling() {
    let server = Server::builder().unix_socket().start().await;
    let path = server.unix_socket().display();
    for url in [format!("unix://{path}"), format!("redis+unix://{path}")] {
        let client = Client::connect(&url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        let queue = client.queue(support::queue_name("unix")).unwrap();
        queue.enqueue(Work::default()).await.unwrap();
        assert_eq!(queue.counts().await.unwrap().pending, 1);
    }
}

/// Answers as a server of this version would, as far as a client asks while it connects, and `OK` to all else. Answers
/// its port.
pub(crate) async fn pretend(version: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut unread = Vec::new();
                while stream.read_buf(&mut unread).await.is_ok_and(|read| read > 0) {
                    while let Ok(Some((request, length))) = Reply::parse_request(&unread) {
                        unread.drain(..length);
                        let info = format!("# Server\r\nredis_version:{version}\r\n");
                        let reply = match request.items()[0].text().to_ascii_uppercase().as_str() {
                            "HELLO" if version.starts_with('5') => "-ERR unknown command `HELLO`\r\n".to_owned(),
                            "HELLO" => format!("%1\r\n+version\r\n+{version}\r\n"),
                            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
                            _ => "+OK\r\n".to_owned(),
                        };
                        if stream.write_all(reply.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    port
}

fn at(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

#[tokio::test]
async fn a_server_that_is_too_old_is_named() {
    let url = at(pretend("6.0.16").await);
    let error = impatient(&url).connect().await.unwrap_err();
    assert!(matches!(&error, ConnectError::TooOld { found } if found == "Redis 6.0.16"), "{error:?}");
    assert!(error.to_string().contains("emq needs Redis 6.2 or Valkey 7.2"), "{error}");
    let url = at(pretend("5.0.14").await);
    let error = impatient(&url).connect().await.unwrap_err();
    assert!(matches!(&error, ConnectError::TooOld { found } if found == "Redis 5 or older"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_an_error() {
    // It answers OK to everything, which is no wire version.
    let url = at(pretend("7.0.0").await);
    let error = impatient(&url).connect().await.unwrap_err();
    assert!(matches!(&error, ConnectError::Call(CallError::ForeignVersion { found }) if found == "OK"), "{error:?}");
}

#[tokio::test]
async fn settings_of_any_size_can_be_used() {
    let builder = Client::builder(support::server().await.url());
    let builder = builder.connect_timeout(Duration::MAX).command_timeout(Duration::MAX).retry_for(Duration::MAX);
    let client = builder.node(u16::MAX).connect().await.unwrap();
    let queue = client.queue(support::queue_name("any")).unwrap();
    let id = queue.enqueue(Work::default()).await.unwrap().id();
    assert_eq!(id.number() >> 12 & 0x3ff, 1_023, "only the lower ten bits count");
    // The shortest that are possible fail, but don't panic.
    let builder = Client::builder(support::server().await.url());
    let _ = builder
        .connect_timeout(Duration::ZERO)
        .command_timeout(Duration::ZERO)
        .retry_for(Duration::ZERO)
        .connect()
        .await;
}

#[tokio::test]
async fn a_client_that_was_closed_says_so() {
    let client = Client::connect(support::server().await.url()).await.unwrap();
    let queue = client.queue(support::queue_name("closed")).unwrap();
    client.close().await;
    client.close().await;
    assert!(matches!(queue.counts().await, Err(CallError::Closed)));
    let error = client.enqueue(Work::default()).await.unwrap_err();
    assert!(matches!(error, emq::EnqueueError::Call { source: CallError::Closed, .. }), "{error}");
}

#[tokio::test]
async fn dropping_every_clone_ends_the_connection() {
    let server = Server::start().await;
    let client = Client::connect(server.url()).await.unwrap();
    let clone = client.clone();
    let queue = clone.queue("q").unwrap();
    drop((client, clone));
    queue.counts().await.unwrap();
    drop(queue);
    let mut raw = support::Raw::connect(&server).await;
    crate::common::eventually("one connection is left, the test's own", async || {
        raw.line("CLIENT LIST").await.text().lines().count() == 1
    })
    .await;
}
