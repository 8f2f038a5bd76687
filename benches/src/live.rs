//! Producers and a worker at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emq::{BoxError, RunError, Stats, Worker, WorkerHandle};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    jobs::{ClockedJob, QUEUE, Told, now},
    lab::Lab,
    settings::Settings,
};

/// How long the first job may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A worker whose jobs tell how long after their enqueue they began; the producer has a client of its own.
pub(crate) struct Live {
    lab: Lab,
    client: emq::Client,
    handle: WorkerHandle,
    run: JoinHandle<Result<Stats, RunError>>,
    told: UnboundedReceiver<Duration>,
}

impl Live {
    pub(crate) async fn start(settings: &Settings, concurrency: usize) -> Result<Self, BoxError> {
        let lab = Lab::start(settings).await;
        let (client, for_worker) = (lab.client().await?, lab.client().await?);
        let (tell, told) = mpsc::unbounded_channel();
        let worker = Worker::builder(&for_worker).state(Told(tell)).register::<ClockedJob>().concurrency(concurrency);
        let worker = worker.build()?;
        let (handle, run) = (worker.handle(), tokio::spawn(worker.run()));
        let mut live = Self { lab, client, handle, run, told };
        // From its first jobs on it is settled in.
        for _ in 0..20 {
            live.one().await?;
        }
        Ok(live)
    }

    /// Enqueues a job, and waits until it has begun: how long after the enqueue was called that was.
    pub(crate) async fn one(&mut self) -> Result<Duration, BoxError> {
        self.client.enqueue(ClockedJob { enqueued: nanos() }).await?;
        self.next().await
    }

    /// The next delay that a job tells.
    async fn next(&mut self) -> Result<Duration, BoxError> {
        Ok(timeout(PATIENCE, self.told.recv()).await?.ok_or("the worker ended")?)
    }

    /// Waits until the worker sleeps.
    pub(crate) async fn idle(&self) -> Result<(), BoxError> {
        let queue = self.client.queue(QUEUE)?;
        while self.handle.stats().in_hand > 0 || queue.counts().await?.unfinished() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Enqueues and processes as fast as both go at the same time, for so long: jobs per second.
    pub(crate) async fn rate(&mut self, time: Duration) -> Result<f64, BoxError> {
        /// Enough that the worker never starves, and few enough that what is left is soon done.
        const AHEAD: u64 = 2_000;
        const PER_CALL: u64 = 100;
        // Else a job of before would be counted among those of now.
        self.idle().await?;
        let (begun, before) = (now(), self.handle.stats().completed);
        let mut sent = 0;
        while now() - begun < time {
            let done = self.handle.stats().completed - before;
            if sent - done > AHEAD {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            self.client.enqueue_many((0..PER_CALL).map(|_| ClockedJob { enqueued: nanos() })).await?;
            sent += PER_CALL;
        }
        let rate = (self.handle.stats().completed - before) as f64 / (now() - begun).as_secs_f64();
        for _ in 0..sent {
            self.next().await?;
        }
        Ok(rate)
    }

    /// Enqueues this many jobs a second for so long, those of a millisecond in one call: how long each took to begin,
    /// counted from when it should have been enqueued.
    pub(crate) async fn at_rate(&mut self, per_second: f64, time: Duration) -> Result<Vec<Duration>, BoxError> {
        let over = Arc::new(AtomicBool::new(false));
        let producer = tokio::spawn({
            let (client, over) = (self.client.clone(), Arc::clone(&over));
            async move {
                let mut tick = interval(Duration::from_millis(1));
                tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
                let (begun, mut sent) = (now(), 0);
                while !over.load(Ordering::Relaxed) {
                    tick.tick().await;
                    let due = ((now() - begun).as_secs_f64() * per_second) as u64;
                    let due_at = |n: u64| begun + Duration::from_secs_f64(n as f64 / per_second);
                    let jobs = (sent..due).map(|n| ClockedJob { enqueued: due_at(n).as_nanos() as u64 });
                    client.enqueue_many(jobs).await?;
                    sent = due;
                }
                Ok::<_, BoxError>(sent)
            }
        });
        tokio::time::sleep(time).await;
        over.store(true, Ordering::Relaxed);
        let sent = producer.await??;
        let mut delays = Vec::with_capacity(sent as usize);
        for _ in 0..sent {
            delays.push(self.next().await?);
        }
        Ok(delays)
    }

    pub(crate) async fn stop(self) -> Result<(), BoxError> {
        self.handle.shutdown();
        self.run.await??;
        drop(self.lab);
        Ok(())
    }
}

fn nanos() -> u64 {
    now().as_nanos() as u64
}
