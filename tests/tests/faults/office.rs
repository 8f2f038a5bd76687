//! The worker process of these tests, and the queue that it works for.
//!
//! A job says in its payload what its handler does; the process tells of each run by a line.

use std::{
    env,
    time::{Duration, Instant, UNIX_EPOCH},
};

use emq::{
    Backoff, Client, Completion, Handler, Job, JobContext, JobError, JobId, JobOptions, Queue, Worker,
    inject::{ReportError, Scope},
    shutdown_signal,
};
use serde::{Deserialize, Serialize};
use support::{Child, Raw, Server, child, event, in_role, queue_name};

/// The lease of the workers, unless a test says otherwise.
pub(crate) const LEASE: Duration = Duration::from_millis(1_000);

/// The beat of the workers.
pub(crate) const BEAT: Duration = Duration::from_millis(200);

/// What nothing that works takes as long as, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a handler does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Chore {
    /// It is done at once.
    Quick,
    /// It takes so many milliseconds.
    Takes(u64),
    /// It takes for ever in its first run, and is done at once in later ones.
    HangsAtFirst,
    /// It takes the process down, each time.
    Aborts,
    /// It notes down its slot and its id, in a list of its queue.
    Notes,
    /// It panics in its first run, and is done at once in later ones.
    PanicsAtFirst,
    /// It takes so many milliseconds, and ends so.
    EndsAfter(u64, End),
    /// It takes for ever, and what it has left elsewhere tells how far it is until that is refused.
    Reports,
}

/// How a run ends that isn't simply done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum End {
    Fails,
    FailsForGood,
    Snoozes,
    Discards,
}

impl End {
    fn error(self) -> JobError {
        match self {
            Self::Fails => JobError::new("it failed"),
            Self::FailsForGood => JobError::permanent("it failed for good"),
            Self::Snoozes => JobError::snooze(Duration::from_millis(20)),
            Self::Discards => JobError::discard("nothing to do"),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) chore: Chore,
}

impl Job for Task {
    const NAME: &'static str = "task";
    const OPTIONS: JobOptions = JobOptions::new().backoff(Backoff::fixed(Duration::from_millis(20)));
}

impl Handler<()> for Task {
    async fn run(self, scope: Scope<()>) -> Result<Completion, JobError> {
        let (id, run) = (scope.context().id(), scope.context().fence());
        event(&format!("begins {id} {run}"));
        match self.chore {
            Chore::Quick => {}
            Chore::Takes(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Chore::HangsAtFirst if run == 1 => std::future::pending().await,
            Chore::HangsAtFirst => {}
            Chore::Aborts => std::process::abort(),
            Chore::Notes => note(scope.context()).await,
            Chore::PanicsAtFirst => assert!(run > 1, "at first"),
            Chore::EndsAfter(ms, end) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                return Err(end.error());
            }
            Chore::Reports => {
                // A task of its own isn't dropped with the run that has lost its lease.
                tokio::spawn(report(scope.context().clone()));
                std::future::pending::<()>().await;
            }
        }
        event(&format!("ends {id} {run}"));
        Ok(Completion::empty())
    }
}

/// Where the slots of a queue are noted down.
pub(crate) fn notes(queue: &str) -> String {
    format!("notes:{queue}")
}

async fn note(context: &JobContext) {
    let url = env::var("EMQ_TEST_URL").unwrap();
    let port = url.rsplit(':').next().unwrap().trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    let slot = context.slot().expect("it is the job of a slot").duration_since(UNIX_EPOCH).unwrap().as_millis();
    let line = format!("{slot} {}", context.id());
    Raw::open(port).await.unwrap().command(&["RPUSH", &notes(context.queue()), &line]).await;
}

async fn report(context: JobContext) {
    let (id, run) = (context.id(), context.fence());
    let mut is_first = true;
    loop {
        match context.progress(&run).await {
            Ok(()) if std::mem::take(&mut is_first) => event(&format!("reports {id} {run}")),
            Err(ReportError::Stale) => break,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    let logged = context.log("too late").await;
    event(&format!("refused {id} {run} and its line {}", matches!(logged, Err(ReportError::Stale))));
}

/// The worker process.
#[tokio::test]
async fn worker_main() {
    if !in_role("office::worker_main") {
        return;
    }
    let variable = |name: &str| env::var(name).unwrap();
    let ms = |name: &str, default: Duration| {
        env::var(name).map_or(default, |text| Duration::from_millis(text.parse().unwrap()))
    };
    if env::var_os("EMQ_TEST_ABORT").is_some() {
        // As if it were built with `panic = "abort"`.
        std::panic::set_hook(Box::new(|_| std::process::abort()));
    }
    let client = Client::connect(variable("EMQ_TEST_URL")).await.unwrap();
    event("connected");
    tokio::time::sleep(ms("EMQ_TEST_HESITATE", Duration::ZERO)).await;
    let worker = Worker::builder(&client)
        .register::<Task>()
        .queue(variable("EMQ_TEST_QUEUE"))
        .name("clerk")
        .concurrency(4)
        .lease(ms("EMQ_TEST_LEASE", LEASE))
        .beat(BEAT)
        .grace(ms("EMQ_TEST_GRACE", Duration::from_secs(20)))
        .build()
        .unwrap();
    let ready = async {
        let mut told = std::pin::pin!(shutdown_signal());
        // Signals are listened to from the first poll on: one that comes before that would end the process.
        tokio::select! {
            biased;
            () = &mut told => {}
            () = std::future::ready(()) => {
                event("ready");
                told.await;
            }
        }
        event("is told to end");
    };
    let stats = worker.run_until(ready).await.unwrap();
    event(&format!("lost {} stale {}", stats.lost, stats.stale));
    event(&format!("completed {}", stats.completed));
}

/// A queue of a test's own.
pub(crate) struct Office {
    pub(crate) queue: Queue,
    url: String,
    port: u16,
}

impl Office {
    pub(crate) async fn open(label: &str) -> Self {
        Self::on(support::server().await, label).await
    }

    pub(crate) async fn on(server: &Server, label: &str) -> Self {
        let client = Client::connect(server.url()).await.unwrap();
        Self { queue: client.queue(queue_name(label)).unwrap(), url: server.url(), port: server.port() }
    }

    /// Starts a worker process and waits until it listens to signals.
    pub(crate) async fn worker(&self) -> Child {
        self.worker_with(&[]).await
    }

    pub(crate) async fn worker_with(&self, more: &[(&str, &str)]) -> Child {
        let mut worker = self.worker_that_connects(more).await;
        worker.wait_line("ready").await;
        worker
    }

    /// Starts a worker process and waits until its client is connected.
    pub(crate) async fn worker_that_connects(&self, more: &[(&str, &str)]) -> Child {
        let mut variables = vec![("EMQ_TEST_URL", self.url.as_str()), ("EMQ_TEST_QUEUE", self.queue.name().as_str())];
        variables.extend(more);
        let mut worker = child("office::worker_main", &variables);
        worker.wait_line("connected").await;
        worker
    }

    pub(crate) async fn enqueue(&self, chore: Chore) -> JobId {
        self.queue.enqueue(Task { chore }).await.unwrap().id()
    }

    pub(crate) async fn enqueue_into(&self, lane: &str, chore: Chore) -> JobId {
        self.queue.enqueue(Task { chore }).group(lane).await.unwrap().id()
    }

    /// Ends the lease of a job that is held.
    pub(crate) async fn end_lease(&self, id: JobId) {
        let active = format!("emq:{{{}}}:active", self.queue.name());
        let changed =
            Raw::open(self.port).await.unwrap().command(&["ZADD", &active, "XX", "CH", "1", id.as_str()]).await;
        assert_eq!(changed.int(), 1, "it is held");
    }

    /// Waits until it is so: on the server there is nothing to be awaited.
    pub(crate) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !is_so().await {
            assert!(start.elapsed() < PATIENCE, "it never came to be: {:?}", self.queue.counts().await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn completed(&self, count: u64) {
        self.until(async || self.queue.counts().await.unwrap().completed >= count).await;
    }
}
