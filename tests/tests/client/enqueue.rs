//! One job per enqueue, and an outcome that says what became of it.

use std::collections::HashMap;

use emq::{Admission, Client, Completion, EnqueueError, Job, JobId, NameError, Unique};
use serde::{Deserialize, Serialize};
use support::{Proxy, queue_name, server};

use crate::common::Work;

async fn client() -> Client {
    Client::builder(server().await.url()).node(1).connect().await.unwrap()
}

#[derive(Serialize, Deserialize)]
struct Blob {
    text: String,
}

impl Job for Blob {
    const NAME: &'static str = "blob";
}

#[tokio::test]
async fn fifty_at_once_with_one_id_make_one_job() {
    let client = client().await;
    let name = queue_name("once");
    let id: JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    let calls = (0..50).map(|_| tokio::spawn(client.enqueue(Work { n: 1 }).queue(&name).id(id).into_future()));
    let mut new = 0;
    for call in calls.collect::<Vec<_>>() {
        match call.await.unwrap().unwrap().admission() {
            Admission::Enqueued => new += 1,
            other => assert_eq!(other, Admission::Duplicate(id)),
        }
    }
    assert_eq!(new, 1);
    assert_eq!(client.queue(&name).unwrap().counts().await.unwrap().pending, 1);
}

#[tokio::test]
async fn fifty_at_once_with_one_key_all_learn_who_won() {
    let client = client().await;
    let name = queue_name("once");
    let calls = (0..50).map(|n| tokio::spawn(client.enqueue(Work { n }).queue(&name).unique("k").into_future()));
    let mut ids = HashMap::new();
    for call in calls.collect::<Vec<_>>() {
        let ticket = call.await.unwrap().unwrap();
        let (new, _) = ids.entry(ticket.id()).or_insert((0, 0));
        *new += usize::from(!ticket.is_duplicate());
    }
    assert_eq!(ids.values().map(|(new, _)| *new).collect::<Vec<_>>(), [1], "{ids:?}");
}

#[tokio::test]
async fn fifty_at_once_that_replace_make_one_job_that_does_what_the_last_one_said() {
    let client = client().await;
    let name = queue_name("once");
    let queue = client.queue(&name).unwrap();
    let at_once = async |unique: Unique| {
        let call = |n| client.enqueue(Work { n }).queue(&name).unique(unique.clone()).into_future();
        let calls: Vec<_> = (0..50).map(|n| tokio::spawn(call(n))).collect();
        let mut tickets = Vec::new();
        for call in calls {
            tickets.push(call.await.unwrap().unwrap());
        }
        tickets
    };
    let unique = Unique::key("k").replace_payload().then_once();
    let tickets = at_once(unique.clone()).await;
    let first = tickets[0].id();
    let outcomes = tickets.iter().map(emq::Ticket::admission);
    let (new, merged): (Vec<_>, Vec<_>) = outcomes.partition(|outcome| *outcome == Admission::Enqueued);
    assert_eq!(new.len(), 1);
    assert!(merged.iter().all(|outcome| *outcome == Admission::Replaced(first)), "{merged:?}");

    let lease = queue.claimer("w").claim(10).await.unwrap().jobs[0].lease;
    assert_eq!(lease.id(), first);
    let tickets = at_once(unique).await;
    let second = tickets[0].id();
    let outcomes = tickets.iter().map(emq::Ticket::admission);
    let (parked, merged): (Vec<_>, Vec<_>) = outcomes.partition(|outcome| *outcome == Admission::Parked(first));
    assert_eq!(parked.len(), 1);
    assert!(merged.iter().all(|outcome| *outcome == Admission::Replaced(second)), "{merged:?}");
    queue.complete(&lease, Completion::empty()).await.unwrap();
    let jobs = queue.claimer("w").claim(10).await.unwrap().jobs;
    assert_eq!(jobs.iter().map(|job| job.lease.id()).collect::<Vec<_>>(), [second], "fifty make one");
}

#[tokio::test]
async fn what_is_too_large_or_badly_named_is_refused_before_it_is_sent() {
    let proxy = Proxy::start(server().await.port());
    let client = Client::builder(proxy.url()).node(1).max_payload(100).connect().await.unwrap();
    let sent = proxy.requests();
    // `{"text":"…"}` around it.
    let error = client.enqueue(Blob { text: "x".repeat(90) }).await.unwrap_err();
    assert!(matches!(error, EnqueueError::TooLarge { size: 101, limit: 100 }), "{error:?}");
    let error = client.enqueue(Work::default()).header("h", "x".repeat(100)).await.unwrap_err();
    assert!(matches!(error, EnqueueError::TooLarge { .. }), "headers count as well: {error:?}");
    for bad in ["", "a b", "{a}", "emq", "a\r\nb"] {
        let error = client.enqueue(Work::default()).queue(bad).await.unwrap_err();
        assert!(matches!(error, EnqueueError::Queue(_)), "{bad:?}: {error:?}");
    }
    assert!(matches!(client.queue("a:b").unwrap_err(), NameError::Character { found: ':', .. }));
    assert_eq!(proxy.requests(), sent);
    client.enqueue(Blob { text: "x".repeat(89) }).queue(queue_name("fits")).await.unwrap();
}

#[tokio::test]
async fn a_limit_of_any_size_is_kept() {
    for (limit, takes) in [(0, false), (1, false), (10, true), (usize::MAX, true)] {
        let builder = Client::builder(server().await.url()).node(1).max_payload(limit);
        let client = builder.connect().await.unwrap();
        // `{"text":""}` has eleven bytes, and `{"n":1234}` has ten.
        let large = client.enqueue(Blob { text: String::new() }).queue(queue_name("limit")).await;
        assert_eq!(large.is_ok(), limit > 10, "{large:?}");
        let small = client.enqueue(Work { n: 1_234 }).queue(queue_name("limit")).await;
        assert_eq!(small.is_ok(), takes, "{small:?}");
    }
}

#[derive(Serialize, Deserialize)]
struct Unwritable(HashMap<Vec<u8>, u8>);

impl Job for Unwritable {
    const NAME: &'static str = "unwritable";
}

#[tokio::test]
async fn what_cannot_be_encoded_is_an_error() {
    let job = Unwritable([(vec![1], 1)].into());
    let error = client().await.enqueue(job).await.unwrap_err();
    assert!(matches!(error, EnqueueError::Encode(_)), "{error:?}");
}

#[tokio::test]
async fn a_million_bytes_are_allowed_by_default_and_more_are_not() {
    let client = client().await;
    let name = queue_name("large");
    let limit = 1024 * 1024;
    client.enqueue(Blob { text: "x".repeat(limit - 11) }).queue(&name).await.unwrap();
    let error = client.enqueue(Blob { text: "x".repeat(limit - 10) }).queue(&name).await.unwrap_err();
    assert!(matches!(error, EnqueueError::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn the_producers_trace_goes_along_unless_the_job_has_its_own() {
    let builder = Client::builder(server().await.url()).node(1).trace_context(|| Some("00-ambient-01".into()));
    let client = builder.connect().await.unwrap();
    let queue = client.queue(queue_name("trace")).unwrap();
    let id = queue.enqueue(Work::default()).await.unwrap().id();
    assert_eq!(queue.get(id).await.unwrap().unwrap().headers["traceparent"], "00-ambient-01");
    let id = queue.enqueue(Work::default()).header("traceparent", "00-own-01").await.unwrap().id();
    assert_eq!(queue.get(id).await.unwrap().unwrap().headers["traceparent"], "00-own-01");
}

#[tokio::test]
async fn any_text_is_a_key_of_its_own() {
    let client = client().await;
    let name = queue_name("keys");
    let long = "k".repeat(10_000);
    let keys = ["", " ", "a", "A", "a b", "a:b", "{a}", "ключ", "\0", "\r\n", &long, &long[1..]];
    for key in keys {
        let first = client.enqueue(Work { n: 1 }).queue(&name).unique(key).await.unwrap();
        assert!(!first.is_duplicate(), "{key:?}");
        let second = client.enqueue(Work { n: 2 }).queue(&name).unique(key).await.unwrap();
        assert_eq!(second.admission(), Admission::Duplicate(first.id()), "{key:?}");
    }
    assert_eq!(client.queue(&name).unwrap().counts().await.unwrap().pending, keys.len() as u64);
}

#[tokio::test]
async fn nothing_is_sent_until_it_is_awaited() {
    let client = client().await;
    let name = queue_name("lazy");
    drop(client.enqueue(Work::default()).queue(&name));
    assert_eq!(client.queue(&name).unwrap().counts().await.unwrap().unfinished(), 0);
}
