//! A hand on the running queue: a worker obeys at once, and costs little while it has to wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use emq::{Completion, Draft, JobError, Rate};
use support::{Proxy, Server};

use crate::errand::{Does, Errand, Place, is_done, ms, start, telling, tells};

#[tokio::test]
async fn nothing_starts_once_pause_has_returned_also_not_on_workers_that_were_waiting() {
    let server = Server::start().await;
    let place = Place::on(&server, "pause").await;
    let (tell, mut told) = telling();
    let workers = [(); 3].map(|()| start(place.worker(tells(&tell)).beat(ms(50))));
    place.waited_for(3).await;
    for round in 0..10 {
        place.queue.pause().await.unwrap();
        for n in 0..5 {
            place.errand(round * 10 + n).await.unwrap();
        }
        // Each of them has looked, and each has taken a marker that the beat has set.
        tokio::time::sleep(ms(120)).await;
        assert_eq!(told.rest(), Vec::<u64>::new());
        place.queue.resume().await.unwrap();
        for _ in 0..5 {
            told.next().await;
        }
    }
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_limited_worker_sleeps_until_the_limit_ends_and_starts_in_time() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    for lane in [None, Some("a")] {
        let place = Place::through(&server, &proxy.url(), "limited").await;
        let rate = Rate::per(1, ms(700));
        match lane {
            None => place.queue.set_rate(rate).await.unwrap(),
            Some(lane) => place.queue.lane(lane).unwrap().set_rate(rate).await.unwrap(),
        }
        let (tell, mut told) = telling();
        let does = Does::new(move |_, _| {
            tell.tell(Instant::now());
            std::future::ready(Ok(Completion::empty()))
        });
        let worker = start(place.worker(does).beat(ms(60_000)));
        let draft = |n| Draft::of(Errand { n }).queue(place.name());
        let drafts = (0..6).map(|n| if let Some(lane) = lane { draft(n).group(lane) } else { draft(n) });
        place.client.enqueue_many(drafts).await.unwrap();
        told.next().await;
        let before = proxy.requests();
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(told.next().await);
        }
        let sent = proxy.requests() - before;
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Without being woken it would look by itself every 5 s.
        assert!(gaps.iter().filter(|gap| **gap < ms(2_500)).count() >= 2, "{gaps:?}");
        // Per job: to look when its time has come, to wait for it, to claim and to complete it.
        assert!(sent < 5 * 16, "{sent} commands for 5 jobs in {:?}", times[4] - times[0]);
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_job_that_is_rate_limited_costs_no_attempt_and_its_lane_waits_with_it_while_others_run() {
    let place = Place::shared("limited").await;
    let (tell, mut told) = telling();
    let limited = Arc::new(AtomicUsize::new(0));
    let does = {
        let limited = Arc::clone(&limited);
        Does::new(move |n, ctx| {
            tell.tell((n, Instant::now(), ctx.failures()));
            let is_limited = n == 0 && limited.fetch_add(1, Ordering::SeqCst) == 0;
            std::future::ready(if is_limited { Err(ctx.rate_limited(ms(400))) } else { Ok(Completion::empty()) })
        })
    };
    let worker = start(place.worker(does).concurrency(1));
    for (n, lane) in [(0, "a"), (1, "a"), (2, "b")] {
        place.errand(n).group(lane).max_attempts(1).await.unwrap();
    }
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(told.next().await);
    }
    let order: Vec<_> = runs.iter().map(|(n, ..)| *n).collect();
    assert!(order == [0, 2, 0, 1], "{order:?}");
    assert!(runs[2].1 - runs[0].1 >= ms(390), "{:?}", runs[2].1 - runs[0].1);
    assert_eq!(runs[2].2, 0);
    place.completed(3).await;
    let stats = worker.stop().await;
    assert_eq!((stats.rate_limited, stats.completed, stats.failed()), (1, 3, 0));
}

#[tokio::test]
async fn in_a_strict_order_the_second_queue_waits_for_the_first() {
    let place = Place::shared("first").await;
    let other = place.another("second");
    let (tell, mut told) = telling();
    other.enqueue(20).await;
    for n in 100..120 {
        place.errand(n).await.unwrap();
    }
    let worker = place.worker(tells(&tell)).queue(other.name()).strict_order().concurrency(1);
    let worker = start(worker);
    let mut order = Vec::new();
    for _ in 0..40 {
        order.push(told.next().await >= 100);
    }
    worker.stop().await;
    assert_eq!(order[..20], [true; 20], "{order:?}");
}

#[tokio::test]
async fn queues_with_weights_share_a_worker_in_proportion() {
    let place = Place::shared("heavy").await;
    let other = place.another("light");
    let (tell, mut told) = telling();
    let drafts = |place: &Place, from| {
        let name = place.name().to_owned();
        (0..400_u64).map(move |n| Draft::of(Errand { n: from + n }).queue(name.as_str()))
    };
    place.client.enqueue_many(drafts(&place, 0)).await.unwrap();
    place.client.enqueue_many(drafts(&other, 1_000)).await.unwrap();
    let worker = place.worker(tells(&tell)).queue(other.name()).queue_weight(place.name(), 3).concurrency(4);
    let worker = start(worker);
    let mut heavy = 0;
    for _ in 0..400 {
        heavy += usize::from(told.next().await < 1_000);
    }
    worker.stop().await;
    assert!((285..=315).contains(&heavy), "{heavy} of 400 were of the queue with three quarters");
}

#[tokio::test]
async fn a_queue_that_had_no_work_isnt_starved_by_the_backlog_of_another() {
    let place = Place::shared("backlog").await;
    let other = place.another("now-and-then");
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        tell.tell(n);
        async {
            tokio::time::sleep(ms(5)).await;
            Ok::<_, JobError>(Completion::empty())
        }
    });
    place.enqueue(4_000).await;
    let worker = start(place.worker(does).queue(other.name()).concurrency(2));
    for n in [10_000, 10_001] {
        // It has found the other queue empty by then.
        place.completed(place.queue.counts().await.unwrap().completed + 20).await;
        other.errand(n).await.unwrap();
        while told.next().await != n {}
    }
    assert!(place.queue.counts().await.unwrap().pending > 1_000, "before the backlog is worked off");
    worker.stop().await;
}

#[tokio::test]
async fn slots_that_are_reserved_for_a_queue_are_free_when_its_job_comes() {
    let place = Place::shared("slow").await;
    let other = place.another("urgent");
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        tell.tell(n);
        async move {
            if n < 1_000 {
                std::future::pending::<()>().await;
            }
            Ok::<_, JobError>(Completion::empty())
        }
    });
    place.enqueue(10).await;
    let worker = place.worker(does).queue(other.name()).concurrency(3).queue_reserve(other.name(), 1).grace(ms(0));
    let worker = start(worker);
    told.next().await;
    told.next().await;
    for n in 1_000..1_010 {
        other.errand(n).await.unwrap();
        assert_eq!(told.next().await, n);
    }
    place.until(async || worker.stats().in_hand == 2).await;
    worker.stop().await;
}

#[tokio::test]
async fn settings_of_queues_that_cant_be_kept_are_all_reported() {
    let place = Place::shared("wrong").await;
    let builder = place
        .worker(is_done())
        .concurrency(4)
        .queue("other")
        .queue_weight("nobody", 2)
        .queue_concurrency("other", 1)
        .queue_reserve("other", 4)
        .strict_order();
    let text = builder.build().unwrap_err().to_string();
    for part in [
        "something is set for the queue \"nobody\"",
        "4 slots are reserved of the 4 that the worker has, and 1 queues share the rest",
        "4 slots are reserved for the queue \"other\", which may have 1 jobs in hand",
        "weights say nothing in a strict order",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
