//! A worker process.

use std::{env, path::Path, time::Duration};

use emq::{BoxError, Client, Stats, Worker, WorkerHandle, shutdown_signal};
use tokio::time::interval;

use crate::{job::EnrollJob, school::School};

/// Short, so that the jobs of a killed worker are soon given to another.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

const CONCURRENCY: usize = 4;

/// Works until it is told to end, or killed.
pub(crate) async fn run(queue: &str, database: &Path) -> Result<(), BoxError> {
    let school = School::open(database)?;
    let client = Client::connect(env::var("EMQ_URL")?).await?;
    let worker = Worker::builder(&client)
        .state(school.clone())
        .register::<EnrollJob>()
        .queue(queue)
        .concurrency(CONCURRENCY)
        .lease(LEASE)
        .beat(Duration::from_millis(500))
        // However often a worker dies under a job, the job isn't to blame here.
        .max_stalled(None)
        .build()?;
    let notes = tokio::spawn(note_late_runs(worker.handle(), school.clone()));
    let stats = worker.run_until(shutdown_signal()).await?;
    notes.abort();
    school.note_worker(stats).await?;
    client.close().await;
    Ok(())
}

/// Writes down what came too late, soon after it did: this process may be killed at any time.
async fn note_late_runs(worker: WorkerHandle, school: School) {
    let mut noted = Stats::default();
    let mut beat = interval(Duration::from_millis(100));
    loop {
        beat.tick().await;
        let stats = worker.stats();
        if (stats.lost, stats.stale) != (noted.lost, noted.stale) && school.note_worker(stats).await.is_ok() {
            noted = stats;
        }
    }
}
