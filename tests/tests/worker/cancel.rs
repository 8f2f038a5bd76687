//! Cancelling what runs.

use std::{sync::mpsc, time::Instant};

use emq::{Cancelled, Completion, JobState};

use crate::errand::{Does, Place, hangs, is_done, ms, start, telling};

#[tokio::test]
async fn a_running_job_is_dropped_at_once_and_ends_as_cancelled() {
    struct Flag(crate::errand::Tell<Instant>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.tell(Instant::now());
        }
    }
    let place = Place::shared("cancel").await;
    let (tell, mut told) = telling();
    let (drops, mut dropped) = telling();
    let does = Does::new(move |n, ctx| {
        tell.tell((n, ctx));
        let flag = Flag(drops.clone());
        async move {
            let _flag = flag;
            std::future::pending().await
        }
    });
    let worker = start(place.worker(does));
    let mut took = Vec::new();
    for n in 0..9 {
        let ticket = place.errand(n).await.unwrap();
        let (_, ctx) = told.next().await;
        let before = Instant::now();
        assert_eq!(ticket.cancel().await.unwrap(), Cancelled::Asked);
        took.push(dropped.next().await - before);
        assert!(ctx.is_cancelled());
        place.until(async || place.queue.state(ticket.id()).await.unwrap() == Some(JobState::Cancelled)).await;
    }
    // Without being told it would take until the next renewal, 10 s.
    took.sort_unstable();
    assert!(took[took.len() / 4] < ms(2_000), "{took:?}");
    let stats = worker.stop().await;
    assert_eq!((stats.cancelled, stats.lost, stats.in_hand), (9, 0, 0));
}

#[tokio::test]
async fn a_worker_that_hears_nothing_learns_of_it_when_it_renews_the_lease() {
    let place = Place::shared("deaf").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).lease(ms(3_000)));
    let ticket = place.errand(1).await.unwrap();
    told.next().await;
    // As it stands in the row, and nobody is told.
    let key = place.key(format!("job:{}", ticket.id()));
    place.raw().await.command(&["HSET", &key, "cancel", "3600000"]).await;
    place.until(async || place.queue.state(ticket.id()).await.unwrap() == Some(JobState::Cancelled)).await;
    assert_eq!(worker.stop().await.cancelled, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_blocks_its_thread_ends_when_its_lease_has_run_out_and_never_runs_again() {
    let place = Place::shared("blocks").await;
    let (tell, mut told) = telling();
    let (go_on, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let does = Does::new(move |n, _| {
        tell.tell(n);
        let _ = blocked.lock().unwrap().recv();
        std::future::ready(Ok(Completion::empty()))
    });
    let worker = start(place.worker(does).lease(ms(400)).beat(ms(50)));
    let ticket = place.errand(1).await.unwrap();
    told.next().await;
    assert_eq!(ticket.cancel().await.unwrap(), Cancelled::Asked);
    place.until(async || place.queue.state(ticket.id()).await.unwrap() == Some(JobState::Cancelled)).await;
    assert_eq!(worker.stats().in_hand, 1, "the function still runs");
    go_on.send(()).unwrap();
    place.until(async || worker.stats().in_hand == 0).await;
    assert_eq!(worker.stop().await.cancelled, 1, "what it decided came too late");
    assert!(told.rest().is_empty());
}

#[tokio::test]
async fn a_run_that_is_done_first_is_done() {
    let place = Place::shared("first").await;
    let ticket = place.errand(1).await.unwrap();
    let worker = start(place.worker(is_done()));
    place.completed(1).await;
    assert_eq!(ticket.cancel().await.unwrap(), Cancelled::Gone);
    assert_eq!(worker.stop().await.completed, 1);
}
