//! A job in hand stays in hand, however long it takes and whatever its thread does; one that was lost is let go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use emq::{Completion, JobContext};

use crate::errand::{Brief, Does, Place, ms, start, telling};

/// A handler that counts its runs and takes so long.
fn takes(runs: &Arc<AtomicU64>, time: Duration) -> Does {
    let runs = Arc::clone(runs);
    Does::new(move |_, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(time).await;
            Ok(Completion::empty())
        }
    })
}

#[tokio::test]
async fn a_handler_that_takes_longer_than_three_leases_runs_once() {
    let place = Place::shared("long").await;
    let runs = Arc::default();
    let workers =
        [(); 2].map(|()| start(place.worker(takes(&runs, ms(4_000))).lease(ms(1_200)).beat(ms(100)).concurrency(8)));
    place.enqueue(8).await;
    place.completed(8).await;
    let mut lost = 0;
    for worker in workers {
        lost += worker.stop().await.lost;
    }
    assert_eq!((runs.load(Ordering::SeqCst), lost), (8, 0));
}

#[tokio::test]
async fn a_job_with_a_shorter_lease_than_its_worker_keeps_it_and_comes_back_sooner() {
    let place = Place::shared("brief").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.lease()));
        async move {
            tokio::time::sleep(ms(3_500)).await;
            Ok(Completion::empty())
        }
    });
    let worker = start(place.worker(does).lease(ms(60_000)).beat(ms(100)));
    let id = place.queue.enqueue(Brief { n: 7 }).await.unwrap().id();
    assert_eq!(told.next().await, (7, ms(1_000)));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    place
        .until(async || {
            let dump = place.dump().await;
            let deadline = dump.get(&place.key("active"), &id.to_string()).map(|score| score.parse::<u64>().unwrap());
            deadline.is_some_and(|deadline| deadline < now + 10_000)
        })
        .await;
    place.completed(1).await;
    assert!(told.rest().is_empty(), "it ran once");
    worker.stop().await;
}

/// In a runtime of its own, whose threads this test's handlers can't block.
fn elsewhere(work: impl Future<Output = ()> + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work);
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_of_the_runtime_keep_their_leases() {
    let place = Place::shared("blocked").await;
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let blocks = Does::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        // What a user does by mistake.
        std::thread::sleep(ms(4_000));
        std::future::ready(Ok(Completion::empty()))
    });
    place.enqueue(4).await;
    let worker = start(place.worker(blocks).lease(ms(1_200)).concurrency(4));

    // Somebody who would take what isn't held.
    let (url, queue) = (support::server().await.url(), place.name().to_owned());
    let (over, mut is_over) = tokio::sync::watch::channel(false);
    let reaper = elsewhere(async move {
        let queue = emq::Client::connect(url).await.unwrap().queue(queue).unwrap();
        while !*is_over.borrow_and_update() {
            assert!(queue.reap(Some(3)).await.unwrap().recovered.is_empty(), "a lease ran out");
            tokio::time::sleep(ms(20)).await;
        }
    });
    place.completed(4).await;
    over.send(true).unwrap();
    tokio::task::spawn_blocking(move || reaper.join().unwrap()).await.unwrap();
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.stale), (4, 0, 0));
    assert_eq!(runs.load(Ordering::SeqCst), 4);
}

/// Takes the job away by `theft`, and sees to it that its handler is dropped and nothing is written for it.
async fn loses(theft: fn(&Place, emq::JobId) -> Vec<String>) {
    let place = Place::shared("theft").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |_, ctx: JobContext| {
        tell.tell("begins");
        let tell = tell.clone();
        async move {
            // Work that was moved to another task.
            tokio::spawn(async move {
                ctx.cancelled().await;
                tell.tell("is told");
            });
            std::future::pending().await
        }
    });
    let worker = start(place.worker(does).lease(ms(300)).beat(ms(60_000)));
    let id = place.errand(0).await.unwrap().id();
    assert_eq!(told.next().await, "begins");
    place.raw().await.command(&theft(&place, id)).await;
    let before = place.dump().await;
    assert_eq!(told.next().await, "is told");
    place.until(async || worker.stats().lost == 1).await;
    assert_eq!(worker.stats().in_hand, 0);
    // A renewal of before may have written the deadline once more.
    let deadline = format!("{} {id}", place.key("active"));
    let after = place.dump().await;
    assert_eq!(before.without(&deadline).diff(&after.without(&deadline)), Vec::<String>::new());
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.failed(), stats.released), (0, 0, 0));
}

#[tokio::test]
async fn a_job_that_was_taken_from_the_active_ones_is_let_go_and_nothing_is_written() {
    loses(|place, id| vec!["ZREM".into(), place.key("active"), id.to_string()]).await;
}

#[tokio::test]
async fn a_job_that_somebody_else_has_claimed_is_let_go_and_nothing_is_written() {
    loses(|place, id| vec!["HINCRBY".into(), place.key(format!("job:{id}")), "attempts".into(), "1".into()]).await;
}

#[tokio::test]
async fn a_job_that_was_deleted_is_let_go_and_nothing_is_written() {
    loses(|place, id| vec!["DEL".into(), place.key(format!("job:{id}"))]).await;
}

#[tokio::test]
async fn a_claim_that_took_longer_than_the_lease_is_no_stall() {
    use support::proxy::When;
    let server = support::Server::start().await;
    let proxy = support::Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "slow").await;
    let near = emq::Client::connect(server.url()).await.unwrap().queue(place.name()).unwrap();
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.stalls()));
        std::future::ready(Ok(Completion::empty()))
    });
    // The claims don't get through, and are repeated for longer than the lease.
    proxy.cut_request(crate::errand::is_claim, When::Every(1));
    let worker = start(place.worker(does).lease(ms(500)).beat(ms(60_000)).max_stalled(1));
    proxy.wait_cuts(1).await;
    near.enqueue(crate::errand::Errand { n: 7 }).await.unwrap();
    tokio::time::sleep(ms(1_000)).await;
    proxy.clear();
    assert_eq!(told.next().await, (7, 0));
    place.until(async || near.counts().await.unwrap().completed == 1).await;
    assert_eq!(worker.stop().await.lost, 0);
}

#[tokio::test]
async fn a_job_that_ends_after_it_was_lost_is_stale() {
    let place = Place::shared("stale").await;
    let (tell, mut told) = telling();
    let go = Arc::new(tokio::sync::Notify::new());
    let wait = Arc::clone(&go);
    let does = Does::new(move |_, _| {
        tell.tell(());
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(Completion::empty())
        }
    });
    // No renewal comes in between.
    let worker = start(place.worker(does).lease(ms(60_000)).beat(ms(60_000)));
    let id = place.errand(0).await.unwrap().id();
    told.next().await;
    place.raw().await.command(&["HINCRBY", &place.key(format!("job:{id}")), "attempts", "1"]).await;
    let before = place.dump().await;
    go.notify_one();
    place.until(async || worker.stats().stale == 1).await;
    assert_eq!(before.diff(&place.dump().await), Vec::<String>::new());
    assert_eq!(worker.stop().await.completed, 0);
}
