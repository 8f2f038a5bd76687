//! Many at once of what works for one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use emq::{Completion, Draft, JobError, JobState, Rate, Schedule, Unique};

use crate::errand::{Does, Errand, Place, begins_at_once, hangs, ms, start, telling, tells};

#[tokio::test]
async fn two_hundred_runs_that_are_cancelled_at_once_free_what_they_held() {
    let place = Place::shared("cancels").await;
    let lane = place.queue.lane("a").unwrap();
    lane.set_concurrency(100).await.unwrap();
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).concurrency(300).beat(ms(60_000)));
    let draft = |n: u64| Draft::of(Errand { n }).queue(place.name()).unique(Unique::key(format!("k{n}")));
    let drafts = (0..200).map(|n| if n % 2 == 0 { draft(n).group("a") } else { draft(n) });
    let tickets = place.client.enqueue_many(drafts).await.unwrap();
    for _ in 0..200 {
        told.next().await;
    }
    futures_util::future::join_all(tickets.iter().map(emq::Ticket::cancel)).await;
    place.until(async || place.queue.counts().await.is_ok_and(|counts| counts.active == 0)).await;
    for ticket in &tickets {
        assert_eq!(place.queue.state(ticket.id()).await.unwrap(), Some(JobState::Cancelled));
    }
    assert_eq!(lane.state().await.unwrap().active, 0);
    assert!(place.dump().await.keys().iter().all(|key| !key.contains("de:") && !key.contains("slots")));
    // Each place and each key is free.
    let drafts = (200..300).map(|n| draft(n - 200).group("a"));
    place.client.enqueue_many(drafts).await.unwrap();
    for _ in 0..100 {
        told.next().await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_crowd_that_is_told_429_waits_together_loses_no_attempt_and_runs_afterwards() {
    for lane in [None, Some("a")] {
        let place = Place::shared("crowd").await;
        let limited = Arc::new(AtomicUsize::new(0));
        let (tell, mut told) = telling();
        let does = {
            let limited = Arc::clone(&limited);
            Does::new(move |n, ctx| {
                let is_limited = limited.fetch_add(1, Ordering::SeqCst) < 30;
                if !is_limited {
                    tell.tell((n, ctx.failures()));
                }
                std::future::ready(if is_limited { Err(ctx.rate_limited(ms(100))) } else { Ok(Completion::empty()) })
            })
        };
        let worker = start(place.worker(does).concurrency(30).beat(ms(60_000)));
        let draft = |n| Draft::of(Errand { n }).queue(place.name()).max_attempts(1);
        let drafts = (0..60).map(|n| if let Some(lane) = lane { draft(n).group(lane) } else { draft(n) });
        place.client.enqueue_many(drafts).await.unwrap();
        let mut ran = Vec::new();
        for _ in 0..60 {
            let (n, failures) = told.next().await;
            assert_eq!(failures, 0, "{n}");
            ran.push(n);
        }
        ran.sort_unstable();
        assert!(ran.iter().copied().eq(0..60), "{ran:?}");
        place.completed(60).await;
        let stats = worker.stop().await;
        assert_eq!((stats.failed(), stats.completed), (0, 60), "{lane:?}");
    }
}

#[tokio::test]
async fn twenty_idle_workers_are_no_later_than_one() {
    let place = Place::shared("idle").await;
    let (tell, mut told) = telling();
    let workers: Vec<_> = (0..20).map(|_| start(place.worker(tells(&tell)).beat(ms(60_000)))).collect();
    let mut late = Vec::new();
    for n in 0..9 {
        let due = std::time::Instant::now() + ms(150);
        place.errand(n).delay(ms(150)).await.unwrap();
        told.next().await;
        late.push(due.elapsed());
    }
    begins_at_once("a job that falls due", late).await;
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn twenty_who_register_another_schedule_at_once_leave_one_of_them_and_it_goes_on() {
    let place = Place::shared("upserts").await;
    let (tell, mut told) = telling();
    let workers = [(); 2].map(|()| start(place.worker(tells(&tell))));
    let recurring = place.queue.recurring();
    for _ in 0..5 {
        let upserts = (0..20).map(|n| {
            let schedule = Schedule::every(ms(30 + n));
            let recurring = recurring.clone();
            async move { recurring.upsert("tick", schedule, Errand { n }).await.unwrap() }
        });
        futures_util::future::join_all(upserts).await;
        assert_eq!(recurring.list(0, 10).await.unwrap().len(), 1);
        // Its slots come, whichever it is.
        told.rest();
        told.next().await;
    }
    let kept = recurring.get("tick").await.unwrap().unwrap().schedule;
    // What had been enqueued before the last change may still come.
    place.until(async || place.queue.counts().await.is_ok_and(|counts| counts.unfinished() == 0)).await;
    told.rest();
    for _ in 0..5 {
        let n = told.next().await;
        assert_eq!(kept, Some(Schedule::every(ms(30 + n))));
    }
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_rate_is_used_whatever_number_of_workers_shares_it_and_jobs_keep_their_order() {
    let place = Place::shared("shared").await;
    place.queue.set_rate(Rate::per(100, ms(500)).burst(5)).await.unwrap();
    let (tell, mut told) = telling();
    let workers = [(); 4].map(|()| start(place.worker(tells(&tell)).concurrency(2).beat(ms(60_000))));
    let begun = std::time::Instant::now();
    place.enqueue(200).await;
    let mut order = Vec::new();
    for _ in 0..200 {
        order.push(told.next().await);
    }
    let took = begun.elapsed();
    assert!(took >= ms(950), "200 jobs of 100 in 500 ms, in {took:?}");
    // Jobs that were claimed one after the other may begin in another order, but none was put back behind others.
    let far = order.iter().zip(0..).map(|(n, at): (&u64, u64)| n.abs_diff(at)).max().unwrap();
    assert!(far <= 20, "{order:?}");
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn those_who_wait_for_jobs_that_end_in_every_way_are_all_told() {
    let place = Place::shared("ends").await;
    let does = Does::new(|n, _| async move {
        match n % 3 {
            0 => Ok(Completion::empty()),
            1 => Err(JobError::permanent("no")),
            _ => std::future::pending().await,
        }
    });
    let mut events = place.queue.events().await.unwrap();
    let worker = start(place.worker(does).concurrency(200).beat(ms(60_000)));
    let tickets =
        place.client.enqueue_many((0..150).map(|n| Draft::of(Errand { n }).queue(place.name()))).await.unwrap();
    let cancels = tickets.iter().enumerate().filter(|(n, _)| n % 3 == 2).map(|(_, ticket)| ticket.cancel());
    futures_util::future::join_all(cancels).await;
    // Each of them ends once, and that is told once.
    let mut ended = std::collections::BTreeMap::new();
    while ended.len() < 150 {
        let event = tokio::time::timeout(crate::errand::PATIENCE, events.next()).await.unwrap().unwrap();
        let how = match &event {
            emq::Event::Completed { .. } => 0,
            emq::Event::Dead { reason, .. } => {
                assert_eq!(reason.as_deref(), Some("no"));
                1
            }
            emq::Event::Cancelled { .. } => 2,
            other => panic!("{other:?}"),
        };
        assert_eq!(ended.insert(event.id().unwrap(), how), None, "{event:?}");
    }
    for (n, ticket) in tickets.iter().enumerate() {
        assert_eq!(ended[&ticket.id()], n % 3);
    }
    worker.stop().await;
}
