//! The way out: soon when there is nothing to do, within bounded time whatever happens, and with nothing left behind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use emq::{Client, Completion, JobContext, JobState};
use support::{
    Proxy, Raw, Server,
    proxy::{Command, When},
};

use crate::errand::{Does, Errand, Place, hangs, is_done, ms, start, telling, tells};

/// How many connections the server has, but for the one that asks.
async fn connections(raw: &mut Raw) -> usize {
    raw.command(&["CLIENT", "LIST"]).await.text().lines().count() - 1
}

#[tokio::test]
async fn an_idle_worker_ends_within_a_second_and_leaves_no_connection() {
    let server = Server::start().await;
    let place = Place::on(&server, "idle").await;
    let mut raw = place.raw().await;
    let before = connections(&mut raw).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    place.errand(0).await.unwrap();
    told.next().await;
    place.completed(1).await;
    assert!(connections(&mut raw).await > before);
    let stop = Instant::now();
    worker.stop().await;
    // Neither its grace time is waited for, nor the call in which it waits for jobs: 5 s each.
    assert!(stop.elapsed() < ms(4_000), "{:?}", stop.elapsed());
    let raw = std::sync::Mutex::new(Some(raw));
    place
        .until(async || {
            let mut own = raw.lock().unwrap().take().unwrap();
            let now = connections(&mut own).await;
            *raw.lock().unwrap() = Some(own);
            now == before
        })
        .await;
    let claims = place.key("claims");
    let dump = support::Dump::of(&mut place.raw().await, &claims).await;
    assert!(dump.is_empty(), "the worker is forgotten: {:?}", dump.lines());
}

#[tokio::test]
async fn a_worker_that_stops_takes_no_marker_with_it() {
    let server = Server::start().await;
    let place = Place::on(&server, "markers").await;
    let (tell, mut told) = telling();
    let stays = start(place.worker(tells(&tell)).beat(ms(60_000)));
    place.errand(1_000).await.unwrap();
    told.next().await;
    for n in 0..20 {
        let leaves = start(place.worker(tells(&tell)).beat(ms(60_000)));
        place.waited_for(2).await;
        leaves.handle.shutdown();
        let before = Instant::now();
        place.errand(n).await.unwrap();
        assert_eq!(told.next().await, n);
        // A worker looks without a marker every 5 s.
        assert!(before.elapsed() < ms(4_000), "{:?}", before.elapsed());
        leaves.stop().await;
    }
    stays.stop().await;
}

#[tokio::test]
async fn what_ends_within_the_grace_time_is_settled() {
    let place = Place::shared("grace").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        tell.tell(n);
        async {
            // For longer than the lease: it is kept meanwhile.
            tokio::time::sleep(ms(900)).await;
            Ok(Completion::empty())
        }
    });
    let worker = start(place.worker(does).concurrency(4).lease(ms(300)).grace(ms(20_000)));
    place.enqueue(10).await;
    for _ in 0..4 {
        told.next().await;
    }
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.released, stats.in_hand), (4, 0, 0));
    assert!(told.rest().is_empty(), "nothing was claimed any more");
    assert_eq!(place.queue.counts().await.unwrap().pending, 6);
}

#[tokio::test]
async fn what_doesnt_is_given_back_at_once_and_is_another_workers_then() {
    let place = Place::shared("back").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).concurrency(3).lease(ms(60_000)).grace(ms(100)));
    place.enqueue(3).await;
    for _ in 0..3 {
        told.next().await;
    }
    let (tell, mut told) = telling();
    let other = start(place.worker(tells(&tell)));
    let stop = Instant::now();
    let stats = worker.stop().await;
    assert_eq!(stats.released, 3);
    assert!(stop.elapsed() >= ms(100));
    for _ in 0..3 {
        told.next().await;
    }
    place.completed(3).await;
    assert!(stop.elapsed() < ms(30_000), "long before the leases would have ended");
    other.stop().await;
}

#[tokio::test]
async fn a_job_that_is_given_back_has_lost_nothing() {
    let place = Place::shared("unharmed").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |_, ctx: JobContext| {
        let tell = tell.clone();
        tell.tell(());
        tokio::spawn(async move {
            ctx.cancelled().await;
            tell.tell(());
        });
        std::future::pending()
    });
    let worker = start(place.worker(does).grace(ms(0)));
    let id = place.errand(0).max_attempts(1).await.unwrap().id();
    told.next().await;
    worker.stop().await;
    told.next().await;
    let job = place.queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.failures, job.stalled, job.last_error), (JobState::Pending, 0, 0, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_job_that_blocks_its_thread_is_given_back_all_the_same() {
    let place = Place::shared("deaf").await;
    let (tell, mut told) = telling();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let is_over = Arc::new(std::sync::Mutex::new(is_over));
    let does = Does::new(move |n, _| {
        tell.tell(n);
        // Until the test is over, for at most a minute.
        let _ = is_over.lock().unwrap().recv_timeout(Duration::from_secs(60));
        std::future::ready(Ok(Completion::empty()))
    });
    let worker = start(place.worker(does).grace(ms(0)));
    let id = place.errand(0).await.unwrap().id();
    told.next().await;
    let stop = Instant::now();
    assert_eq!(worker.stop().await.released, 1);
    assert!(stop.elapsed() < ms(15_000), "{:?}", stop.elapsed());
    assert_eq!(place.queue.state(id).await.unwrap(), Some(JobState::Pending));
    drop(over);
}

#[tokio::test]
async fn a_worker_whose_server_is_gone_ends_in_bounded_time() {
    let server = Server::start().await;
    let place = Place::on(&server, "gone").await;
    let (tell, mut told) = telling();
    let idle = start(place.worker(is_done()));
    let busy = start(place.worker(hangs(&tell)).grace(ms(500)));
    place.until(async || busy.stats().claimed + idle.stats().claimed == 0).await;
    for n in 0..20 {
        place.errand(n).await.unwrap();
    }
    place.until(async || busy.stats().in_hand > 0 || idle.stats().completed == 20).await;
    let _ = told.rest();
    server.kill().await;
    for worker in [idle, busy] {
        let stop = Instant::now();
        worker.stop().await;
        assert!(stop.elapsed() < ms(20_000), "{:?}", stop.elapsed());
    }
}

#[tokio::test]
async fn a_worker_whose_server_is_mute_ends_in_bounded_time() {
    let server = Server::start().await;
    let place = Place::on(&server, "mute").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).grace(ms(0)));
    place.errand(0).await.unwrap();
    told.next().await;
    server.freeze();
    let stop = Instant::now();
    worker.stop().await;
    server.thaw();
    assert!(stop.elapsed() < ms(20_000), "{:?}", stop.elapsed());
}

#[tokio::test]
async fn a_worker_that_is_told_to_stop_before_it_runs_doesnt_begin() {
    let place = Place::shared("before").await;
    place.errand(0).await.unwrap();
    let worker = place.worker(is_done()).build().unwrap();
    worker.handle().shutdown();
    let stats = worker.run().await.unwrap();
    assert_eq!(stats.claimed, 0);
    let worker = place.worker(is_done()).build().unwrap();
    assert_eq!(worker.run_until(std::future::ready(())).await.unwrap().claimed, 0);
    assert_eq!(place.queue.counts().await.unwrap().pending, 1);
}

#[tokio::test]
async fn a_worker_may_be_told_to_stop_at_any_moment_of_its_start_and_twice() {
    let server = Server::start().await;
    let place = Place::on(&server, "moments").await;
    let before = connections(&mut place.raw().await).await;
    for step in 0..40 {
        let worker = start(place.worker(is_done()));
        for _ in 0..step * 3 {
            tokio::task::yield_now().await;
        }
        worker.handle.shutdown();
        worker.handle.shutdown();
        worker.stop().await;
    }
    place.until(async || connections(&mut place.raw().await).await == before).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_writes_nothing_and_its_jobs_come_back() {
    let server = Server::start().await;
    let place = Place::on(&server, "dropped").await;
    let connected = connections(&mut place.raw().await).await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        let tell = tell.clone();
        tell.tell(n);
        tokio::spawn(async move {
            ctx.cancelled().await;
            tell.tell(100);
        });
        std::future::pending()
    });
    let worker = start(place.worker(does).lease(ms(1_000)));
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, 7);
    let handle = worker.handle.clone();
    let before = place.dump().await;
    worker.drop_run().await;
    assert_eq!(told.next().await, 100, "the run was dropped, and what it left behind is told");
    assert_eq!(before.without("*:active *").diff(&place.dump().await.without("*:active *")), Vec::<String>::new());
    // Also while somebody still looks at it, nothing of it waits for markers.
    place.until(async || connections(&mut place.raw().await).await == connected).await;
    assert_eq!(handle.stats().completed, 0);

    let (tell, mut told) = telling();
    let next = start(place.worker(tells(&tell)).beat(ms(100)));
    assert_eq!(told.next().await, 7);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_are_started_and_stopped_fifty_times_by_ten_tasks() {
    let server = Server::start().await;
    let place = Arc::new(Place::on(&server, "stress").await);
    let before = connections(&mut place.raw().await).await;
    let tasks: Vec<_> = (0..10)
        .map(|task| {
            let place = Arc::clone(&place);
            tokio::spawn(async move {
                for n in 0..5 {
                    place.errand(task * 10 + n).await.unwrap();
                    let worker = start(place.worker(is_done()));
                    tokio::time::sleep(ms((task * 7 + n * 13) % 40)).await;
                    let stop = Instant::now();
                    worker.stop().await;
                    assert!(stop.elapsed() < ms(10_000), "{:?}", stop.elapsed());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let last = start(place.worker(is_done()));
    place.completed(50).await;
    last.stop().await;
    place.until(async || connections(&mut place.raw().await).await == before).await;
}

/// Whether the server answers a claim before the worker gives it up, or after.
#[tokio::test]
async fn a_claim_that_is_under_way_when_the_worker_stops_leaves_no_job_behind() {
    let server = Server::start().await;
    for pause in [ms(500), ms(1_300)] {
        let proxy = Arc::new(Proxy::start(server.port()));
        let place = Place::through(&server, &proxy.url(), "underway").await;
        let near = Client::connect(server.url()).await.unwrap().queue(place.name()).unwrap();
        // So short that the claim isn't there already when the worker is woken.
        let worker = start(place.worker(is_done()).lease(ms(3_900)).beat(ms(60_000)));
        place.waited_for(1).await;
        let (tell, mut held) = telling();
        let broken_line = Arc::downgrade(&proxy);
        let holds = move |command: &Command| {
            if crate::errand::is_claim(command) {
                broken_line.upgrade().unwrap().hold();
                tell.tell(());
            }
            false
        };
        proxy.cut_request(holds, When::Once);
        near.enqueue(Errand { n: 0 }).await.unwrap();
        held.next().await;
        worker.handle.shutdown();
        tokio::time::sleep(pause).await;
        proxy.clear();
        let stats = worker.end().await;
        let counts = near.counts().await.unwrap();
        assert_eq!((counts.active, counts.pending), (0, 1), "held for {pause:?}: {stats:?}");
        assert_eq!((stats.claimed, stats.released), (1, 1));
    }
}
