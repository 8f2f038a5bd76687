//! The events of a queue.

use emq::{Completion, Event, Events, JobError, Unique};
use support::{Proxy, Server};

use crate::errand::{Does, PATIENCE, Place, ms, start};

async fn next(events: &mut Events) -> Event {
    tokio::time::timeout(PATIENCE, events.next()).await.expect("it comes").expect("it goes on")
}

#[tokio::test]
async fn each_transition_that_ends_or_interrupts_a_run_is_told_in_order() {
    let place = Place::shared("events").await;
    let mut events = place.client.events(place.name()).await.unwrap();
    let does = Does::new(|n, ctx| async move {
        match (n, ctx.fence()) {
            (1, 1) => Err(JobError::retry_after(ms(1))),
            (1, 2) => Err(JobError::snooze(ms(1))),
            (1, _) => {
                ctx.progress(&"half").await?;
                Completion::of(&1)
            }
            _ => Err(JobError::permanent("no")),
        }
    });
    let worker = start(place.worker(does));
    let id = place.errand(1).await.unwrap().id();
    let half = Event::Progress { id, progress: "half".into() };
    for wanted in [Event::Retried { id }, Event::Snoozed { id }, half, Event::Completed { id }] {
        assert_eq!(next(&mut events).await, wanted);
    }
    let id = place.errand(2).await.unwrap().id();
    assert_eq!(next(&mut events).await, Event::Dead { id, reason: Some("no".into()) });
    worker.stop().await;
    place.queue.revive(id).await.unwrap();
    place.queue.remove(id).await.unwrap();
    let waiting = place.errand(3).await.unwrap();
    waiting.cancel().await.unwrap();
    place.raw().await.command(&["PUBLISH", &place.key("events"), "hello"]).await;
    let told = [Event::Revived { id }, Event::Removed { id }, Event::Cancelled { id: waiting.id() }];
    for wanted in told.into_iter().chain([Event::Other { text: "hello".into() }]) {
        assert_eq!(next(&mut events).await, wanted);
    }
}

#[tokio::test]
async fn a_dead_letter_is_told_with_its_reason() {
    let place = Place::shared("reasons").await;
    let mut events = place.queue.events().await.unwrap();
    let expired = place.errand(1).expires_in(ms(1)).await.unwrap().id();
    tokio::time::sleep(ms(5)).await;
    let mut claimer = place.queue.claimer("c");
    assert!(claimer.claim(1).await.unwrap().jobs.is_empty());
    assert_eq!(next(&mut events).await, Event::Dead { id: expired, reason: Some("expired".into()) });
    for (n, text) in [(2, "with \"quotes\",\n\u{1} and \u{fe0f}"), (3, "")] {
        let id = place.errand(n).await.unwrap().id();
        let lease = claimer.claim(1).await.unwrap().jobs[0].lease;
        place.queue.bury(&lease, text).await.unwrap();
        assert_eq!(next(&mut events).await, Event::Dead { id, reason: Some(text.into()) });
        assert_eq!(place.queue.get(id).await.unwrap().unwrap().last_error.as_deref(), Some(text));
    }
    let stalled = place.errand(4).await.unwrap().id();
    claimer.claim(1).await.unwrap();
    place.raw().await.command(&["ZADD", &place.key("active"), "1", stalled.as_str()]).await;
    place.queue.reap(Some(1)).await.unwrap();
    assert_eq!(next(&mut events).await, Event::Dead { id: stalled, reason: Some("stalled".into()) });
}

#[tokio::test]
async fn an_enqueue_is_told_if_it_is_merged_into_a_job_or_waits_behind_one_and_not_else() {
    let place = Place::shared("merged").await;
    let mut events = place.queue.events().await.unwrap();
    let unique = || Unique::key("k").replace_payload().then_once();
    let first = place.errand(1).unique(unique()).await.unwrap().id();
    assert!(place.errand(2).unique("k").await.unwrap().is_duplicate());
    assert_eq!(place.errand(3).unique(unique()).await.unwrap().id(), first);
    place.queue.claimer("c").claim(1).await.unwrap();
    let parked = place.errand(4).unique(unique()).await.unwrap().id();
    assert_eq!(place.errand(5).unique(unique()).await.unwrap().id(), parked);
    for wanted in [
        Event::Replaced { id: first },
        Event::Parked { id: parked, behind: Some(first) },
        Event::Replaced { id: parked },
    ] {
        assert_eq!(next(&mut events).await, wanted);
    }
}

#[tokio::test]
async fn a_listener_is_told_of_a_gap_after_a_reconnect_and_hears_on() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "gap").await;
    let mut events = place.queue.events().await.unwrap();
    proxy.sever();
    assert_eq!(next(&mut events).await, Event::Gap);
    let ticket = place.errand(1).await.unwrap();
    place.until(async || ticket.cancel().await.is_ok()).await;
    assert_eq!(next(&mut events).await, Event::Cancelled { id: ticket.id() });
}

#[tokio::test]
async fn a_listener_that_takes_nothing_for_long_is_told_of_a_gap() {
    let place = Place::shared("slow").await;
    let mut events = place.queue.events().await.unwrap();
    let mut raw = place.raw().await;
    for _ in 0..2_000 {
        raw.command(&["PUBLISH", &place.key("events"), "hello"]).await;
    }
    // They come in order, so all are there when this one is.
    let mut second = place.queue.events().await.unwrap();
    raw.command(&["PUBLISH", &place.key("events"), "last"]).await;
    while next(&mut second).await != (Event::Other { text: "last".into() }) {}
    assert_eq!(next(&mut events).await, Event::Gap);
}

#[tokio::test]
async fn events_end_with_the_client() {
    let server = Server::start().await;
    let place = Place::on(&server, "end").await;
    let mut events = place.queue.events().await.unwrap();
    place.client.close().await;
    assert_eq!(tokio::time::timeout(PATIENCE, events.next()).await.unwrap(), None);
}
