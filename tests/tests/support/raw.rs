//! The tests' own client, and the protocol it reads.

use support::{Raw, Reply, Server};

#[tokio::test]
async fn bytes_come_back_as_they_went() {
    let mut raw = Raw::connect(support::server().await).await;
    let key = support::queue_name("raw");
    let value: Vec<u8> = (0..=255).collect();
    let set: [&[u8]; 3] = [b"SET", key.as_bytes(), &value];
    assert_eq!(raw.command(&set).await.text(), "OK");
    assert_eq!(raw.command(&["GET", &key]).await, Reply::Bulk(value));
}

#[tokio::test]
async fn every_kind_of_reply() {
    let mut raw = Raw::connect(support::server().await).await;
    let script = "return {1, 'two', false, {'nested'}, redis.status_reply('fine')}";
    let reply = raw.command(&["EVAL", script, "0"]).await;
    assert_eq!(reply.to_string(), "[1, \"two\", nil, [\"nested\"], fine]");
    let reply = raw.command(&["NO-SUCH"]).await;
    assert!(reply.to_string().starts_with("(error) ERR unknown command"));

    let reply = raw.line("HELLO 3").await;
    assert!(matches!(reply, Reply::Map(_)), "{reply}");
    let reply = raw.command(&["GET", &support::queue_name("none")]).await;
    assert_eq!(reply, Reply::Nil);
    let reply = raw.line("SUBSCRIBE a").await;
    assert!(matches!(reply, Reply::Push(_)), "{reply}");
}

#[tokio::test]
async fn a_closed_connection_is_an_error() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    server.kill().await;
    assert!(raw.try_command(&["PING"]).await.is_err());
    assert!(Raw::open(server.port()).await.is_err());
}

#[test]
fn half_a_reply_is_none_and_nonsense_an_error() {
    let whole = b"*3\r\n$2\r\nab\r\n%1\r\n+k\r\n#t\r\n=5\r\ntxt:x\r\n";
    for length in 0..whole.len() {
        assert_eq!(Reply::parse(&whole[..length]), Ok(None), "{length}");
    }
    let (reply, length) = Reply::parse(whole).unwrap().unwrap();
    assert_eq!(length, whole.len());
    assert_eq!(reply.to_string(), "[\"ab\", {k, true}, \"x\"]");

    let (reply, length) = Reply::parse(b"|1\r\n+ttl\r\n:1\r\n+value\r\n+next").unwrap().unwrap();
    assert_eq!((reply.text(), length), ("value", 22));
    assert!(Reply::parse(b"hello\r\n").is_err());
    assert!(Reply::parse(b":x\r\n").is_err());
}
