//! Functions that block their threads past their timeout.

use std::sync::{Mutex, mpsc};

use emq::Completion;

use crate::errand::{Does, Hasty, Place, ms, start, telling};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_job_that_blocks_its_thread_past_its_timeout_is_failed_and_runs_again_and_its_place_is_reported() {
    let place = Place::shared("stuck").await;
    let (tell, mut told) = telling();
    let (go_on, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let does = Does::new(move |n, ctx| {
        tell.tell((n, ctx.fence()));
        if ctx.fence() == 1 {
            let _ = blocked.lock().unwrap().recv();
        }
        std::future::ready(Completion::of(&ctx.fence()))
    });
    let worker = start(place.worker(does).lease(ms(3_000)).beat(ms(50)));
    let ticket = place.queue.enqueue(Hasty { n: 1 }).await.unwrap();
    assert_eq!(told.next().await, (1, 1));
    assert_eq!(told.next().await, (1, 2), "it runs again while the first run still blocks");
    place.completed(1).await;
    // The server knows a little earlier than the worker that the second run is done.
    place.until(async || (worker.stats().stuck, worker.stats().in_hand) == (1, 1)).await;
    let result = place.queue.get(ticket.id()).await.unwrap().unwrap().result;
    go_on.send(()).unwrap();
    place.until(async || worker.stats().stuck == 0).await;
    assert_eq!(place.queue.get(ticket.id()).await.unwrap().unwrap().result, result, "the first run is refused");
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.stale, stats.in_hand), (1, 1, 0));
}
