//! Many jobs in one go: one outcome each, in order.

use std::time::Duration;

use emq::{Admission, Client, Draft, EnqueueError, JobState, Place};
use support::proxy::{Command, When};
use support::{Proxy, Raw, queue_name, server};

use crate::common::{MINUTE, Work, impatient};

#[tokio::test]
async fn two_and_a_half_thousand_jobs_in_twelve_calls_and_in_order() {
    let proxy = Proxy::start(server().await.port());
    let client = Client::builder(proxy.url()).node(1).connect().await.unwrap();
    let name = queue_name("many");
    let queue = client.queue(&name).unwrap();
    // The script is loaded by now.
    queue.enqueue(Work { n: 0 }).await.unwrap();
    let sent = proxy.requests();
    let tickets = client.enqueue_many((0..2_500).map(|n| Draft::of(Work { n }).queue(&name))).await.unwrap();
    // 64, 128, 9 of 250, and the rest.
    assert_eq!(proxy.requests() - sent, 12);
    assert_eq!(tickets.len(), 2_500);
    assert!(tickets.is_sorted_by_key(emq::Ticket::id));
    assert_eq!(queue.counts().await.unwrap().pending, 2_501);
    for at in [0, 999, 1_000, 2_499] {
        let job = queue.get(tickets[at].id()).await.unwrap().unwrap();
        assert_eq!(job.payload, format!("{{\"n\":{at}}}").as_bytes());
    }
}

#[tokio::test]
async fn each_draft_says_what_a_single_enqueue_can_say() {
    let client = Client::builder(server().await.url()).node(1).connect().await.unwrap();
    let name = queue_name("many");
    let queue = client.queue(&name).unwrap();
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    let draft = |n| Draft::of(Work { n }).queue(&name);
    let drafts = [
        draft(0).id(id),
        draft(1).delay(MINUTE),
        draft(2).at(std::time::SystemTime::now() + MINUTE),
        draft(3).unique("k").max_attempts(0),
        draft(4).priority(-5).header("tenant", "north"),
    ];
    let tickets = client.enqueue_many(drafts).await.unwrap();
    assert_eq!(tickets[0].id(), id);
    let mut jobs = Vec::new();
    for ticket in &tickets {
        jobs.push(queue.get(ticket.id()).await.unwrap().unwrap());
    }
    let states: Vec<_> = jobs.iter().map(|job| job.state).collect();
    use JobState::{Pending, Scheduled};
    assert_eq!(states, [Pending, Scheduled, Scheduled, Pending, Pending]);
    assert_eq!((jobs[3].deduplication_key.as_deref(), jobs[3].max_attempts), (Some("k"), Some(1)));
    assert_eq!((jobs[4].priority, jobs[4].headers["tenant"].as_str()), (-5, "north"));
    assert_eq!(queue.list(Place::Pending, 0, 1).await.unwrap()[0].id, tickets[4].id());
}

#[tokio::test]
async fn what_fails_is_named_with_its_place_and_reason_and_the_rest_goes_through() {
    let client = Client::builder(server().await.url()).node(1).max_payload(60).connect().await.unwrap();
    let name = queue_name("many");
    let other = queue_name("other");
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    let draft = |n| Draft::of(Work { n }).queue(&name);
    let drafts = [
        draft(0),
        draft(1).header("h", "x".repeat(100)),
        draft(2).queue("bad name"),
        draft(3).id(id),
        draft(4).id(id),
        draft(5).queue(&other),
        draft(3).id(id),
        draft(7),
    ];
    let error = client.enqueue_many(drafts).await.unwrap_err();
    assert_eq!((error.outcomes.len(), error.failed), (8, 3));
    assert!(
        error.to_string().starts_with("3 of 8 jobs weren't enqueued as asked; the first: the payload has"),
        "{error}"
    );
    let outcomes: Vec<_> = error
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(ticket) if ticket.admission() == Admission::Duplicate(id) => "duplicate",
            Ok(_) => "new",
            Err(EnqueueError::TooLarge { .. }) => "too large",
            Err(EnqueueError::Queue(_)) => "queue",
            Err(EnqueueError::Conflict { .. }) => "conflict",
            Err(_) => "other",
        })
        .collect();
    assert_eq!(outcomes, ["new", "too large", "queue", "new", "conflict", "new", "duplicate", "new"]);
    assert_eq!(client.queue(&name).unwrap().counts().await.unwrap().pending, 3);
    assert_eq!(client.queue(&other).unwrap().counts().await.unwrap().pending, 1);
}

#[tokio::test]
async fn a_call_that_fails_does_not_stop_the_next() {
    let server = server().await;
    let client = impatient(&server.url()).connect().await.unwrap();
    let (name, broken) = (queue_name("many"), queue_name("broken"));
    let key = format!("emq:{{{broken}}}:pending");
    Raw::connect(server).await.line(&format!("SET {key} x")).await;
    let is_broken = |n| (250..500).contains(&n);
    let drafts = (0..1_000).map(|n| Draft::of(Work { n }).queue(if is_broken(n) { &broken } else { &name }));
    let error = client.enqueue_many(drafts).await.unwrap_err();
    for (n, outcome) in (0..).zip(&error.outcomes) {
        assert_eq!(matches!(outcome, Err(EnqueueError::Call { .. })), is_broken(n), "{n}: {outcome:?}");
    }
    assert_eq!(client.queue(&name).unwrap().counts().await.unwrap().pending, 750);
}

#[tokio::test]
async fn what_a_cut_leaves_unknown_is_enqueued_once_when_it_is_sent_again() {
    let server = server().await;
    let proxy = Proxy::start(server.port());
    // Only the cut is to fail, also on a busy machine.
    let client = impatient(&proxy.url()).command_timeout(Duration::from_secs(10)).retry_for(Duration::ZERO);
    let client = client.connect().await.unwrap();
    let name = queue_name("many");
    client.enqueue(Work { n: 0 }).queue(&name).await.unwrap();
    let marked = format!("emq:{{{name}}}:pending");
    proxy.cut_request(move |command: &Command| command.has(&marked), When::Nth(2));
    let error = client.enqueue_many((0..3_000).map(|n| Draft::of(Work { n }).queue(&name))).await.unwrap_err();
    let failed: Vec<_> = error.outcomes.iter().map(Result::is_err).collect();
    // The second, and perhaps the first, whose answer was on its way, and those that came before the connection was there again.
    assert!(failed[64] && matches!(error.outcomes[64], Err(EnqueueError::Call { .. })), "{failed:?}");
    let (first, rest) = failed.split_at(64);
    let (second, rest) = rest.split_at(128);
    for call in [first, second].into_iter().chain(rest.chunks(250)) {
        assert!(call.iter().all(|job| *job == call[0]), "a call fails as a whole: {failed:?}");
    }
    proxy.clear();
    let again = impatient(&server.url()).connect().await.unwrap();
    let drafts = error.outcomes.iter().enumerate().filter_map(|(n, outcome)| match outcome {
        Err(EnqueueError::Call { id, .. }) => Some(Draft::of(Work { n: n as u32 }).id(*id).queue(&name)),
        _ => None,
    });
    again.enqueue_many(drafts.collect::<Vec<_>>()).await.unwrap();
    assert_eq!(again.queue(&name).unwrap().counts().await.unwrap().pending, 3_001, "each exactly once");
}

#[tokio::test]
async fn a_queue_takes_many_jobs_whatever_their_drafts_say() {
    let client = Client::builder(server().await.url()).node(1).connect().await.unwrap();
    let queue = client.queue(queue_name("many")).unwrap();
    queue.enqueue_many((0..3).map(|n| Work { n })).await.unwrap();
    queue.enqueue_many([Draft::of(Work { n: 3 }).queue("elsewhere")]).await.unwrap();
    assert_eq!(queue.counts().await.unwrap().pending, 4);
}
