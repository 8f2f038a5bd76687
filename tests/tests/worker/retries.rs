//! Failures: the backoff, the budget, and what costs nothing.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use emq::{Completion, JobContext, JobError, JobState};

use crate::errand::{Does, Hasty, Place, is_done, ms, start, telling};

fn fails(error: impl Fn() -> JobError + Send + Sync + 'static) -> Does {
    Does::new(move |_, _| std::future::ready(Err(error())))
}

#[tokio::test]
async fn a_job_fails_as_often_as_it_may_after_its_backoff_and_is_buried_then() {
    let place = Place::shared("budget").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |_, ctx: JobContext| {
        tell.tell((Instant::now(), ctx.failures(), ctx.fence(), ctx.is_last_attempt()));
        std::future::ready(Err(JobError::new(format!("failure {}", ctx.failures() + 1))))
    });
    let worker = start(place.worker(does).beat(ms(60_000)));
    let id = place.errand(0).max_attempts(4).await.unwrap().id();
    let mut times = Vec::new();
    for run in 0..4 {
        let (at, failures, fence, is_last) = told.next().await;
        assert_eq!((failures, fence, is_last), (run, u64::from(run) + 1, run == 3));
        times.push(at);
    }
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= ms(19)), "the backoff is 20 ms");
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    let job = place.queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.attempts, job.last_error.as_deref()), (4, Some("failure 4")));
    let stats = worker.stop().await;
    assert_eq!((stats.retried, stats.dead, stats.failed()), (3, 1, 4));
    assert!(told.rest().is_empty());
}

#[tokio::test]
async fn a_job_that_is_revived_has_its_whole_budget_again() {
    let place = Place::shared("revived").await;
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let does = Does::new(move |_, _| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        std::future::ready(if run < 4 { Err(JobError::new("not yet")) } else { Ok(Completion::empty()) })
    });
    let worker = start(place.worker(does));
    let id = place.errand(0).max_attempts(2).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    place.queue.revive(id).await.unwrap();
    place.completed(1).await;
    assert_eq!(runs.load(Ordering::SeqCst), 4);
    worker.stop().await;
}

#[tokio::test]
async fn fifty_snoozes_cost_none_of_three_attempts() {
    let place = Place::shared("snoozes").await;
    let does = Does::new(|_, ctx: JobContext| {
        assert_eq!(ctx.failures(), 0);
        let is_enough = ctx.fence() > 50;
        std::future::ready(if is_enough { Ok(Completion::empty()) } else { Err(JobError::snooze(ms(1))) })
    });
    let worker = start(place.worker(does).beat(ms(60_000)));
    place.errand(0).max_attempts(3).await.unwrap();
    place.completed(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.snoozed, stats.completed, stats.failed()), (50, 1, 0));
}

#[tokio::test]
async fn a_failure_after_snoozes_is_the_first() {
    let place = Place::shared("mixed").await;
    let does = Does::new(|_, ctx: JobContext| {
        let failed = ctx.failures();
        std::future::ready(match ctx.fence() {
            1..=5 => Err(JobError::snooze(ms(1))),
            6 | 7 => Err(JobError::new(format!("after {failed}"))),
            _ => Ok(Completion::empty()),
        })
    });
    let worker = start(place.worker(does));
    place.errand(0).max_attempts(3).await.unwrap();
    place.completed(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.snoozed, stats.retried, stats.completed), (5, 2, 1));
}

#[tokio::test]
async fn an_error_text_is_kept_whole_up_to_8_kib_and_cut_beyond() {
    let short: String = "line\r\n\0tab\t\u{1b}[31m\u{202e}é😀".repeat(50);
    let long = "é".repeat(100_000);
    for text in [short.clone(), long] {
        let place = Place::shared("text").await;
        let said = text.clone();
        let worker = start(place.worker(fails(move || JobError::permanent(said.clone()))));
        let id = place.errand(0).await.unwrap().id();
        place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
        let kept = place.queue.get(id).await.unwrap().unwrap().last_error.unwrap();
        assert!(kept.len() <= 8 * 1024);
        if text == short {
            assert_eq!(kept, short);
        } else {
            assert!(kept.len() > 8 * 1024 - 16 && kept.ends_with("é [cut]"));
        }
        worker.stop().await;
    }
}

#[tokio::test]
async fn an_error_is_kept_with_its_sources() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("can't enrol")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let place = Place::shared("sources").await;
    let worker = start(place.worker(fails(|| JobError::permanent(Outer(std::io::Error::other("disk full"))))));
    let id = place.errand(0).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    assert_eq!(place.field(id, "last_error").await.unwrap(), "can't enrol: disk full");
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_takes_longer_than_its_timeout_fails_and_its_future_is_dropped() {
    let place = Place::shared("hasty").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |_, ctx: JobContext| {
        let tell = tell.clone();
        async move {
            tokio::spawn({
                let ctx = ctx.clone();
                async move {
                    ctx.cancelled().await;
                    tell.tell(ctx.failures());
                }
            });
            std::future::pending().await
        }
    });
    let worker = start(place.worker(does));
    let id = place.queue.enqueue(Hasty { n: 0 }).max_attempts(2).await.unwrap().id();
    assert_eq!((told.next().await, told.next().await), (0, 1));
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
    assert_eq!(place.field(id, "last_error").await.unwrap(), "the job ran longer than its timeout of 300ms");
    worker.stop().await;
}

#[tokio::test]
async fn a_job_that_retries_is_done_by_any_worker_that_knows_it() {
    let place = Place::shared("elsewhere").await;
    let failing = start(place.worker(fails(|| JobError::retry_after(ms(100)))));
    place.errand(0).await.unwrap();
    place.until(async || failing.stats().retried == 1).await;
    failing.stop().await;
    let worker = start(place.worker(is_done()));
    place.completed(1).await;
    worker.stop().await;
}
