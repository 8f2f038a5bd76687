//! Settings of any size, and a queue that somebody has written anything into.

use std::{future::Future, time::Duration};

use emq::{Backoff, Completion, Handler, Job, JobError, JobOptions, JobState, Place as In, Worker, inject::Scope};
use serde::{Deserialize, Serialize};

use crate::errand::{Does, Place, Result, is_done, ms, start, telling, tells};

/// A job that says the largest there is of everything.
#[derive(Debug, Serialize, Deserialize)]
struct Endless {
    n: u64,
}

impl Job for Endless {
    const NAME: &'static str = "endless";
    const OPTIONS: JobOptions = JobOptions::new()
        .max_attempts(u32::MAX)
        .timeout(Duration::MAX)
        .lease(Duration::MAX)
        .retention(Duration::MAX)
        .backoff(Backoff::exponential(Duration::MAX, Duration::MAX).jitter(f64::NAN));
}

impl Handler<Does> for Endless {
    async fn run(self, scope: Scope<Does>) -> Result {
        match self.n {
            0 => Ok(Completion::empty()),
            n => Err(JobError::new(format!("{n} of {:?}", scope.context().lease()))),
        }
    }
}

/// And the smallest.
#[derive(Debug, Serialize, Deserialize)]
struct Least {}

impl Job for Least {
    const NAME: &'static str = "least";
    const OPTIONS: JobOptions = JobOptions::new()
        .max_attempts(0)
        .retention(Duration::ZERO)
        .backoff(Backoff::fixed(Duration::ZERO).jitter(f64::NEG_INFINITY));
}

impl Handler<Does> for Least {
    fn run(self, _: Scope<Does>) -> impl Future<Output = Result> + Send + 'static {
        std::future::ready(Err(JobError::retry_after(Duration::ZERO)))
    }
}

#[tokio::test]
async fn the_largest_and_the_least_settings_are_taken_as_they_are_meant() {
    let place = Place::shared("sizes").await;
    let builder = Worker::builder(&place.client).state(is_done()).register::<Endless>().register::<Least>();
    let builder = builder.queue(place.name()).queue_concurrency(place.name(), usize::MAX).concurrency(usize::MAX);
    let worker = start(builder.max_stalled(u32::MAX).name("\0 Ω|:\r\n").beat(ms(10)).lease(ms(100)));
    let queue = &place.queue;
    let done = queue.enqueue(Endless { n: 0 }).await.unwrap().id();
    let failed = queue.enqueue(Endless { n: 1 }).await.unwrap().id();
    let least = queue.enqueue(Least {}).await.unwrap().id();
    let is = async |id, state| queue.state(id).await.unwrap() == Some(state);
    place.until(async || is(done, JobState::Finished).await).await;
    place.until(async || is(failed, JobState::Scheduled).await).await;
    place.until(async || is(least, JobState::Dead).await).await;
    let century = 100.0 * 365.0 * 24.0 * 60.0 * 60.0 * 1_000.0;
    assert!(queue.list(In::Scheduled, 0, 1).await.unwrap()[0].score > century, "it waits as long as there is");
    place.queue.remove(failed).await.unwrap();
    worker.stop().await;
}

/// Bytes by chance, the same each time.
fn chance(seed: &mut u64) -> u64 {
    // xorshift64
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[tokio::test]
async fn a_worker_gets_its_jobs_done_among_rows_and_ids_of_any_bytes() {
    const FIELDS: [&str; 15] = [
        "state",
        "attempts",
        "payload",
        "name",
        "worker",
        "failures",
        "stalled",
        "priority",
        "max_attempts",
        "headers",
        "did",
        "nonce",
        "reaped",
        "settled",
        "group",
    ];
    const VALUES: [&[u8]; 14] = [
        b"",
        b"\0",
        b"\xff",
        b"errand",
        b"other",
        b"{\"n\":1}",
        b"-1",
        b"0",
        b"3",
        b"nan",
        b"1e300",
        b"4294967296",
        b"{\"traceparent\":\"00-x\"}",
        b"|",
    ];
    let place = Place::shared("garbage").await;
    let mut raw = place.raw().await;
    let mut seed = 0x2545_f491_4f6c_dd1d;
    for n in 0..300 {
        let id = match n % 3 {
            0 => format!("JOB{n:011}").into_bytes(),
            1 => chance(&mut seed).to_le_bytes().to_vec(),
            _ => format!("JOB{:011}", chance(&mut seed) % 1_000).into_bytes(),
        };
        let key = [place.key("job:").as_bytes(), &id].concat();
        for _ in 0..chance(&mut seed) % 6 {
            let field = FIELDS[(chance(&mut seed) % FIELDS.len() as u64) as usize];
            let value = VALUES[(chance(&mut seed) % VALUES.len() as u64) as usize];
            raw.command(&[b"HSET", key.as_slice(), field.as_bytes(), value]).await;
        }
        let set = place.key(["pending", "active", "schedule"][(chance(&mut seed) % 3) as usize]);
        raw.command(&[b"ZADD", set.as_bytes(), b"1", &id]).await;
    }
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(20)));
    for n in 1_000..1_100 {
        place.errand(n).await.unwrap();
    }
    let mut missing: std::collections::BTreeSet<u64> = (1_000..1_100).collect();
    while !missing.is_empty() {
        missing.remove(&told.next().await);
    }
    let stats = worker.stop().await;
    assert!(stats.dropped > 0, "{stats:?}");
}
