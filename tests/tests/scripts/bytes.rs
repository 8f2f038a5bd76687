//! What is stored comes back byte for byte.

use emq::{Completion, Job, Settled};
use serde::{Deserialize, Serialize};

use crate::scene::{MINUTE, scene};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Anything(serde_json::Value);

impl Job for Anything {
    const NAME: &'static str = "anything";
}

#[tokio::test]
async fn a_payload_of_any_bytes() {
    let mut scene = scene("bytes").await;
    let all: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..=255).cycle().take(4 << 20).collect();
    let id = "JOB0JZGkP9AMvv";
    for payload in [&b""[..], b"\0", b"\r\n", b"\xff\xfe", b"|:", &all, &large] {
        scene.bytes_command(&[b"HSET", b"@job:JOB0JZGkP9AMvv", b"payload", payload, b"attempts", b"0"]).await;
        scene.command(&format!("ZADD @pending 0 {id}")).await;
        let job = scene.claim().await;
        assert!(job.payload == payload, "{} bytes", payload.len());
        assert!(scene.queue.get(job.lease.id()).await.unwrap().unwrap().payload == payload);
        assert_eq!(scene.queue.complete(&job.lease, Completion::empty()).await.unwrap(), Settled::Accepted);
    }
}

#[tokio::test]
async fn a_payload_of_any_json() {
    let mut scene = scene("bytes").await;
    let texts = [
        "null",
        "0",
        "-0.0",
        "1",
        "false",
        "\"\"",
        "[]",
        "{}",
        "\"\\u0000\\r\\n\\\"\"",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "1e-300",
        "\"Ω 🦀 \\u202e\"",
        "[[[]],{\"\":[null]}]",
    ];
    for text in texts {
        let job = Anything(serde_json::from_str(text).unwrap());
        scene.queue.enqueue(job.clone()).await.unwrap();
        let claimed = scene.claim().await;
        assert_eq!(claimed.decode::<Anything>().unwrap(), job, "{text}");
        let completion = Completion::of(&job).unwrap();
        let result = completion.result().cloned();
        scene.queue.complete(&claimed.lease, completion).await.unwrap();
        let stored = scene.queue.get(claimed.lease.id()).await.unwrap().unwrap();
        assert_eq!(stored.result, result, "{text}");
    }
}

#[tokio::test]
async fn an_error_of_any_text_and_no_more_of_it_than_is_kept() {
    let mut scene = scene("bytes").await;
    let huge = "é".repeat(5 << 20);
    for error in ["", "\0", "\r\n-ERR x\r\n", "\u{fffd}\u{202e}", "OK", "'; return 1 --", &huge] {
        let lease = scene.claimed().await;
        assert_eq!(scene.queue.retry(&lease, MINUTE, error).await.unwrap(), Settled::Accepted);
        let kept = scene.queue.get(lease.id()).await.unwrap().unwrap().last_error.unwrap();
        if error.len() < 8 * 1024 {
            assert_eq!(kept, error);
        } else {
            assert!(kept.len() <= 8 * 1024 && kept.ends_with("é [cut]"), "{} bytes", kept.len());
        }
        scene.make_due(lease.id()).await;
        scene.queue.promote().await.unwrap();
        let lease = scene.claim().await.lease;
        assert_eq!(scene.queue.bury(&lease, error).await.unwrap(), Settled::Accepted);
        assert_eq!(scene.queue.get(lease.id()).await.unwrap().unwrap().last_error.unwrap(), kept);
    }
}

#[tokio::test]
async fn an_error_that_was_not_text_is_shown_as_far_as_it_is() {
    let mut scene = scene("bytes").await;
    let id = scene.enqueue().await;
    let key = format!("@job:{id}");
    scene
        .bytes_command(&[b"HSET", key.as_bytes(), b"last_error", b"caf\xe9", b"state", b"\xff", b"name", b"\xff"])
        .await;
    let stored = scene.queue.get(id).await.unwrap().unwrap();
    assert_eq!(stored.last_error.as_deref(), Some("caf\u{fffd}"));
    assert_eq!(scene.claim().await.name.as_deref(), Some("\u{fffd}"));
}

#[tokio::test]
async fn a_result_of_ten_mebibytes() {
    let mut scene = scene("bytes").await;
    let lease = scene.claimed().await;
    let result = Completion::of(&"x".repeat(10 << 20)).unwrap();
    let bytes = result.result().cloned();
    assert_eq!(scene.queue.complete(&lease, result).await.unwrap(), Settled::Accepted);
    assert!(scene.queue.get(lease.id()).await.unwrap().unwrap().result == bytes);
}
