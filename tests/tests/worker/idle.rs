//! An idle worker starts what comes at once, and asks the server for little meanwhile.

use std::time::{Instant, SystemTime};

use emq::{Admission, Completion, Unique};
use support::{Proxy, Server};

use crate::errand::{Does, Place, begins_at_once, ms, start, telling};

/// A handler that tells when it began.
fn clocked(tell: &crate::errand::Tell<(u64, Instant)>) -> Does {
    let tell = tell.clone();
    Does::new(move |n, _| {
        tell.tell((n, Instant::now()));
        std::future::ready(Ok(Completion::empty()))
    })
}

#[tokio::test]
async fn a_job_that_arrives_is_started_within_50_ms() {
    let place = Place::shared("arrival").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(clocked(&tell)));
    let mut took = Vec::new();
    for n in 0..41 {
        let before = Instant::now();
        place.errand(n).await.unwrap();
        took.push(told.next().await.1 - before);
        // Until it sleeps again.
        place.completed(n + 1).await;
    }
    worker.stop().await;
    begins_at_once("an arrival", took).await;
}

#[tokio::test]
async fn a_due_job_is_started_within_50_ms_of_its_time_and_never_before() {
    let place = Place::shared("due").await;
    let (tell, mut told) = telling();
    // However seldom the beat.
    let workers = [(); 3].map(|()| start(place.worker(clocked(&tell)).beat(ms(60_000))));
    let mut late = Vec::new();
    for n in 0..9 {
        // A worker that sleeps until a job that is due later learns of one that is due earlier.
        place.errand(1_000).delay(ms(60_000)).await.unwrap();
        let due = Instant::now() + ms(150 + 20 * n);
        place.errand(n).at(SystemTime::now() + (due - Instant::now())).await.unwrap();
        let (_, began) = told.next().await;
        // The server's clock counts whole milliseconds.
        assert!(began + ms(2) > due, "{:?} early", due - began);
        late.push(began.saturating_duration_since(due));
    }
    for worker in workers {
        worker.stop().await;
    }
    begins_at_once("what is due", late).await;
}

#[tokio::test]
async fn a_parked_job_is_started_within_50_ms_of_the_end_of_the_one_in_front() {
    let server = Server::start().await;
    let place = Place::on(&server, "parked").await;
    let (tell, mut told) = telling();
    let unique = || Unique::key("k").then_once();
    let mut took = Vec::new();
    for n in 0..9 {
        place.errand(n).unique(unique()).await.unwrap();
        let lease = place.queue.claimer("other").claim(1).await.unwrap().jobs[0].lease;
        // However seldom the beat.
        let worker = start(place.worker(clocked(&tell)).beat(ms(60_000)));
        place.waited_for(1).await;
        assert!(matches!(place.errand(100 + n).unique(unique()).await.unwrap().admission(), Admission::Parked(_)));
        let before = Instant::now();
        place.queue.complete(&lease, Completion::empty()).await.unwrap();
        let (which, began) = told.next().await;
        assert_eq!(which, 100 + n);
        took.push(began - before);
        worker.stop().await;
    }
    begins_at_once("a parked job", took).await;
}

#[tokio::test]
async fn a_retry_is_started_in_time() {
    let place = Place::shared("again").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |_, _| {
        tell.tell(Instant::now());
        std::future::ready(Err(emq::JobError::retry_after(ms(200))))
    });
    let worker = start(place.worker(does).beat(ms(60_000)));
    place.errand(0).max_attempts(10).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..10 {
        times.push(told.next().await);
    }
    worker.stop().await;
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.iter().all(|wait| *wait > ms(198)), "{waits:?}");
    begins_at_once("a retry", waits.iter().map(|wait| wait.saturating_sub(ms(200))).collect()).await;
}

/// How many commands the server has carried out, those inside of scripts among them.
async fn carried_out(server: &Server) -> u64 {
    server.info("stats").await["total_commands_processed"].trim().parse().unwrap()
}

#[tokio::test]
async fn an_idle_worker_has_the_server_carry_out_two_commands_a_second_at_most() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "quiet").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(clocked(&tell)));
    place.errand(0).await.unwrap();
    told.next().await;
    place.completed(1).await;
    // Then it has seen that nothing is there any more.
    let beats = async || server.info("commandstats").await.get("cmdstat_exists").cloned();
    for _ in 0..3 {
        let before = beats().await;
        place.until(async || beats().await != before).await;
    }
    let (sent, done, begun) = (proxy.requests(), carried_out(&server).await, Instant::now());
    tokio::time::sleep(ms(5_000)).await;
    // The question itself among them.
    let (sent, done) = (proxy.requests() - sent, carried_out(&server).await - done - 1);
    let most = 2 * begun.elapsed().as_secs_f64().ceil() as u64;
    assert!(0 < sent && sent <= most && done <= most, "{sent} were sent, and {done} carried out");
    worker.stop().await;
}

#[tokio::test]
async fn an_idle_worker_whose_jobs_are_scheduled_sends_two_commands_a_second_at_most() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "later").await;
    place.errand(0).delay(ms(3_600_000)).await.unwrap();
    let worker = start(place.worker(crate::errand::is_done()));
    place.waited_for(1).await;
    let (sent, begun) = (proxy.requests(), Instant::now());
    tokio::time::sleep(ms(5_000)).await;
    let sent = proxy.requests() - sent;
    assert!(sent <= 2 * begun.elapsed().as_secs_f64().ceil() as u64, "{sent} were sent");
    worker.stop().await;
}

#[tokio::test]
async fn a_hundred_jobs_after_one_wake_are_taken_by_several_workers() {
    let server = Server::start().await;
    let place = Place::on(&server, "hundred").await;
    let (go, may_go) = tokio::sync::watch::channel(false);
    let does = Does::new(move |_, _| {
        let mut may_go = may_go.clone();
        async move {
            let _ = may_go.wait_for(|go| *go).await;
            Ok(Completion::empty())
        }
    });
    let workers = [(); 4].map(|()| start(place.worker(does.clone()).concurrency(5).beat(ms(60_000))));
    // All of them sleep.
    place.waited_for(4).await;
    let before = Instant::now();
    place.enqueue(100).await;
    place.until(async || workers.iter().all(|worker| worker.stats().in_hand == 5)).await;
    // A worker that nobody wakes looks by itself after 5 s.
    assert!(before.elapsed() < ms(4_000), "{:?}", before.elapsed());
    go.send_replace(true);
    place.completed(100).await;
    for worker in workers {
        assert!(worker.stop().await.completed >= 5);
    }
}

#[tokio::test]
async fn a_worker_that_is_busy_leaves_the_marker_to_one_that_isnt() {
    let place = Place::shared("busy").await;
    let (busy_tells, mut busy) = telling();
    let (idle_tells, mut idle) = telling();
    let does = |tell: crate::errand::Tell<u64>| {
        Does::new(move |n, _| {
            tell.tell(n);
            std::future::pending()
        })
    };
    let first = start(place.worker(does(busy_tells)).concurrency(1).beat(ms(60_000)).grace(ms(0)));
    place.errand(0).await.unwrap();
    busy.next().await;
    let second = start(place.worker(does(idle_tells)).concurrency(100).beat(ms(60_000)).grace(ms(0)));
    let mut took = Vec::new();
    for n in 1..20 {
        let before = Instant::now();
        place.errand(n).await.unwrap();
        assert_eq!(idle.next().await, n);
        took.push(before.elapsed());
    }
    begins_at_once("an arrival", took).await;
    assert!(busy.rest().is_empty());
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_worker_that_fell_busy_in_one_queue_leaves_what_comes_into_another_to_others() {
    let server = Server::start().await;
    let (place, other) = (Place::on(&server, "one").await, Place::on(&server, "two").await);
    let (busy_tells, mut busy) = telling();
    let (idle_tells, mut idle) = telling();
    let first = place.worker(crate::errand::hangs(&busy_tells)).queue(other.name()).concurrency(1);
    let first = start(first.beat(ms(60_000)).grace(ms(0)));
    place.waited_for(1).await;
    // From now on it has no room for the other queue.
    place.errand(0).await.unwrap();
    busy.next().await;
    let second = start(other.worker(crate::errand::tells(&idle_tells)).beat(ms(60_000)));
    place.waited_for(1).await;
    let before = Instant::now();
    other.errand(7).await.unwrap();
    assert_eq!(idle.next().await, 7);
    assert!(before.elapsed() < ms(1_000), "{:?}", before.elapsed());
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_however_arrivals_and_endings_meet() {
    let place = Place::shared("meet").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        let tell = tell.clone();
        async move {
            tell.tell((n, Instant::now()));
            // As long as the arrivals are apart: workers fall asleep while jobs come.
            tokio::time::sleep(ms(n % 4)).await;
            Ok(Completion::empty())
        }
    });
    let workers =
        [1, 2, 3].map(|limit| start(place.worker(does.clone()).concurrency(limit).beat(ms(60_000)).lease(ms(60_000))));
    let mut slow = Vec::new();
    for n in 0..400 {
        let before = Instant::now();
        place.errand(n).await.unwrap();
        if n % 3 == 0 {
            tokio::time::sleep(ms(n % 5)).await;
        }
        if n % 20 == 19 {
            // All of them, before the next.
            place.completed(n + 1).await;
            for (_, began) in told.rest() {
                slow.push(began.saturating_duration_since(before));
            }
        }
    }
    // A worker that misses a wake-up looks by itself after 5 s.
    assert!(slow.iter().all(|wait| *wait < ms(3_000)), "{:?}", slow.iter().max());
    for worker in workers {
        worker.stop().await;
    }
}
