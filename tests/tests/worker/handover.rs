//! What one job's end lets start starts at once, and again and again: no hand-over is lost between workers.

use std::time::{Duration, Instant};

use emq::{Completion, Draft, Rate, Unique};

use crate::errand::{Does, Errand, PATIENCE, Place, Running, Told, ms, start, telling, tells};

/// Less than what a worker needs that was told nothing: it looks by itself after 5 s.
const AT_ONCE: Duration = Duration::from_secs(4);

/// Workers that never look by themselves.
fn workers<const N: usize>(place: &Place, does: &Does) -> [Running; N] {
    std::array::from_fn(|_| start(place.worker(does.clone()).beat(ms(60_000))))
}

/// Tells the longest time between two.
async fn longest_gap(told: &mut Told<u64>, count: u64) -> Duration {
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    for _ in 0..count {
        told.next().await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

#[tokio::test]
async fn a_limit_of_one_is_handed_over_a_thousand_times_without_a_gap() {
    for lane in [None, Some("a")] {
        let place = Place::shared("handover").await;
        match lane {
            None => place.queue.set_concurrency(1).await.unwrap(),
            Some(lane) => place.queue.lane(lane).unwrap().set_concurrency(1).await.unwrap(),
        }
        let (tell, mut told) = telling();
        let running = workers::<3>(&place, &tells(&tell));
        let draft = |n| Draft::of(Errand { n }).queue(place.name());
        let drafts = (0..1_000).map(|n| if let Some(lane) = lane { draft(n).group(lane) } else { draft(n) });
        place.client.enqueue_many(drafts).await.unwrap();
        let gap = longest_gap(&mut told, 1_000).await;
        assert!(gap < AT_ONCE, "{lane:?}: nothing started for {gap:?}");
        for worker in running {
            worker.stop().await;
        }
    }
}

#[tokio::test]
async fn jobs_that_come_just_as_the_slot_comes_free_are_not_left_lying() {
    let place = Place::shared("meet").await;
    place.queue.set_concurrency(1).await.unwrap();
    let (tell, mut told) = telling();
    let running = workers::<2>(&place, &tells(&tell));
    for n in 0..300 {
        // The first ends at about the time at which the second comes.
        place.errand(n).await.unwrap();
        place.errand(n).await.unwrap();
        let gap = longest_gap(&mut told, 2).await;
        assert!(gap < AT_ONCE, "nothing started for {gap:?}");
    }
    for worker in running {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_chain_of_parked_jobs_goes_on_job_by_job() {
    let place = Place::shared("chain").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        tell.tell(n);
        async move {
            tokio::time::sleep(ms(n % 4)).await;
            Ok(Completion::empty())
        }
    });
    let running = workers::<2>(&place, &does);
    let unique = || Unique::key("k").replace_payload().then_once();
    let begun = Instant::now();
    let mut last = 0;
    for n in 0..500 {
        place.errand(n).unique(unique()).await.unwrap();
        tokio::time::sleep(ms(n % 3)).await;
    }
    // Whatever was merged into what: the last one runs, and nothing waits on.
    while last != 499 {
        last = told.next().await;
    }
    place.until(async || place.queue.counts().await.is_ok_and(|counts| counts.unfinished() == 0)).await;
    assert!(begun.elapsed() < PATIENCE);
    for worker in running {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_long_job_and_a_rate_that_is_used_up_dont_stop_the_queue() {
    let place = Place::shared("dangling").await;
    place.queue.set_rate(Rate::per(20, ms(200)).burst(4)).await.unwrap();
    place.queue.set_concurrency(3).await.unwrap();
    let (tell, mut told) = telling();
    let does = Does::new(move |n, _| {
        tell.tell(n);
        async move {
            if n == 0 {
                std::future::pending::<()>().await;
            }
            Ok(Completion::empty())
        }
    });
    let worker = start(place.worker(does).beat(ms(60_000)).grace(ms(0)));
    place.enqueue(50).await;
    // One that falls due while the rate is used up.
    place.errand(50).delay(ms(50)).await.unwrap();
    let gap = longest_gap(&mut told, 51).await;
    assert!(gap < AT_ONCE, "nothing started for {gap:?}");
    worker.stop().await;
}

#[tokio::test]
async fn a_job_behind_many_that_have_expired_starts_at_once() {
    let place = Place::shared("stale").await;
    let draft = |n| Draft::of(Errand { n }).queue(place.name()).expires_in(ms(1));
    place.client.enqueue_many((0..5_000).map(draft)).await.unwrap();
    place.client.enqueue_many((0..5_000).map(|n| draft(n).group(format!("l{}", n % 100)))).await.unwrap();
    place.errand(1).priority(1).await.unwrap();
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).concurrency(1).beat(ms(60_000)));
    let gap = longest_gap(&mut told, 1).await;
    assert!(gap < AT_ONCE, "nothing started for {gap:?}");
    place.until(async || place.queue.counts().await.is_ok_and(|counts| counts.dead == 10_000)).await;
    worker.stop().await;
}
