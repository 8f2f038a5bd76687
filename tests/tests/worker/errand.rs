//! The job that these tests run, and the worker that runs it: what the handler does is said by each test.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use emq::{
    Backoff, Client, Completion, Enqueue, Handler, Job, JobContext, JobError, JobId, JobOptions, Queue, RunError,
    Stats, Worker, WorkerBuilder, WorkerHandle, inject::Scope,
};
use serde::{Deserialize, Serialize};
use support::{Dump, Raw, Server, queue_name};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

/// What nothing that works takes as long as, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) type Result = std::result::Result<Completion, JobError>;

type Doing = Arc<dyn Fn(u64, JobContext) -> Pin<Box<dyn Future<Output = Result> + Send>> + Send + Sync>;

/// What the handler does.
#[derive(Clone)]
pub(crate) struct Does(Doing);

impl Does {
    pub(crate) fn new<F: Future<Output = Result> + Send + 'static>(
        does: impl Fn(u64, JobContext) -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |n, context| Box::pin(does(n, context))))
    }
}

impl fmt::Debug for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Does")
    }
}

/// Makes a job whose handler does what its worker's state says.
macro_rules! errand {
    ($(#[$doc:meta])* $job:ident, $name:literal, $options:expr $(, was $old:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Serialize, Deserialize)]
        pub(crate) struct $job {
            pub(crate) n: u64,
        }

        impl Job for $job {
            const NAME: &'static str = $name;
            const ALIASES: &'static [&'static str] = &[$($old)?];
            const OPTIONS: JobOptions = $options;
        }

        impl Handler<Does> for $job {
            fn run(self, scope: Scope<Does>) -> impl Future<Output = Result> + Send + 'static {
                (scope.state().0)(self.n, scope.context().clone())
            }
        }
    };
}

const SOON: Backoff = Backoff::fixed(Duration::from_millis(20)).jitter(0.0);

errand!(
    /// A job that is retried after 20 ms.
    Errand, "errand", JobOptions::new().backoff(SOON), was "errand_of_old"
);
errand!(
    /// A job of another name.
    Other, "other", JobOptions::new().backoff(SOON)
);
errand!(
    /// A job that may take 300 ms.
    Hasty, "hasty", JobOptions::new().backoff(SOON).timeout(Duration::from_millis(300))
);
errand!(
    /// A job with a shorter lease than its worker's.
    Brief, "brief", JobOptions::new().backoff(SOON).lease(Duration::from_secs(1))
);

/// A queue of a test's own, and a client.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) queue: Queue,
    port: u16,
}

impl Place {
    /// On the server that the tests of this binary share.
    pub(crate) async fn shared(label: &str) -> Self {
        Self::on(support::server().await, label).await
    }

    pub(crate) async fn on(server: &Server, label: &str) -> Self {
        Self::through(server, &server.url(), label).await
    }

    /// By another address, a proxy's.
    pub(crate) async fn through(server: &Server, url: &str, label: &str) -> Self {
        Self::of(server, Client::connect(url).await.unwrap(), label)
    }

    /// Of a client with settings of its own.
    pub(crate) fn of(server: &Server, client: Client, label: &str) -> Self {
        let queue = client.queue(queue_name(label)).unwrap();
        Self { client, queue, port: server.port() }
    }

    pub(crate) fn name(&self) -> &str {
        self.queue.name().as_str()
    }

    /// Another queue of the same client.
    pub(crate) fn another(&self, label: &str) -> Self {
        let queue = self.client.queue(queue_name(label)).unwrap();
        Self { client: self.client.clone(), queue, port: self.port }
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw::open(self.port).await.unwrap()
    }

    pub(crate) fn errand(&self, n: u64) -> Enqueue<Errand> {
        self.queue.enqueue(Errand { n })
    }

    pub(crate) async fn enqueue(&self, count: u64) {
        let drafts = (0..count).map(|n| emq::Draft::of(Errand { n }).queue(self.name()));
        self.client.enqueue_many(drafts).await.unwrap();
    }

    /// A worker of this queue that runs every kind of errand, with a short grace.
    pub(crate) fn worker(&self, does: Does) -> WorkerBuilder<Does> {
        Worker::builder(&self.client)
            .state(does)
            .register::<Errand>()
            .register::<Other>()
            .register::<Hasty>()
            .register::<Brief>()
            .queue(self.name())
            .grace(Duration::from_secs(5))
    }

    /// A key of this queue.
    pub(crate) fn key(&self, part: impl fmt::Display) -> String {
        format!("emq:{{{}}}:{part}", self.name())
    }

    /// Everything that is stored of this queue, but for who claimed what.
    pub(crate) async fn dump(&self) -> Dump {
        let dump = Dump::of(&mut self.raw().await, &self.key("*")).await;
        dump.without(&self.key("claims")).without(&self.key("marker"))
    }

    /// A field of a job's row.
    pub(crate) async fn field(&self, id: JobId, field: &str) -> Option<String> {
        self.dump().await.get(&self.key(format!("job:{id}")), field).map(str::to_owned)
    }

    /// Waits until so many queues are waited for on this server.
    pub(crate) async fn waited_for(&self, count: usize) {
        self.until(async || {
            let list = self.raw().await.command(&["CLIENT", "LIST"]).await;
            list.text().lines().filter(|line| line.contains("flags=b")).count() == count
        })
        .await;
    }

    /// Waits until this many jobs are done.
    pub(crate) async fn completed(&self, count: u64) {
        self.until(async || self.queue.counts().await.is_ok_and(|counts| counts.completed >= count)).await;
    }

    /// Waits until it is so: on the server there is nothing to be awaited.
    pub(crate) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !is_so().await {
            if start.elapsed() > PATIENCE {
                panic!("it never came to be:\n{}", self.dump().await.lines().join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) handle: WorkerHandle,
    run: JoinHandle<std::result::Result<Stats, RunError>>,
}

pub(crate) fn start(builder: WorkerBuilder<Does>) -> Running {
    let worker = builder.build().unwrap();
    let handle = worker.handle();
    Running { handle, run: tokio::spawn(worker.run()) }
}

impl Running {
    pub(crate) async fn stop(self) -> Stats {
        self.handle.shutdown();
        self.end().await
    }

    /// Waits until it ends by itself.
    pub(crate) async fn end(self) -> Stats {
        timeout(PATIENCE, self.run).await.expect("it ends").expect("it doesn't panic").expect("it starts")
    }

    /// Drops the future of its run.
    pub(crate) async fn drop_run(self) {
        self.run.abort();
        assert!(self.run.await.is_err());
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle.stats()
    }
}

/// What handlers tell their test.
#[derive(Clone, Debug)]
pub(crate) struct Tell<T>(mpsc::UnboundedSender<T>);

#[derive(Debug)]
pub(crate) struct Told<T>(mpsc::UnboundedReceiver<T>);

pub(crate) fn telling<T>() -> (Tell<T>, Told<T>) {
    let (tell, told) = mpsc::unbounded_channel();
    (Tell(tell), Told(told))
}

impl<T> Tell<T> {
    pub(crate) fn tell(&self, what: T) {
        // A test that is over doesn't listen.
        let _ = self.0.send(what);
    }
}

impl<T> Told<T> {
    /// Waits for the next.
    pub(crate) async fn next(&mut self) -> T {
        timeout(PATIENCE, self.0.recv()).await.expect("it comes").expect("somebody tells")
    }

    /// What has been told and not been waited for.
    pub(crate) fn rest(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// A handler that tells its job's number and is done.
pub(crate) fn tells(tell: &Tell<u64>) -> Does {
    let tell = tell.clone();
    Does::new(move |n, _| {
        tell.tell(n);
        std::future::ready(Ok(Completion::empty()))
    })
}

/// A handler that tells when it begins, and never ends.
pub(crate) fn hangs(tell: &Tell<u64>) -> Does {
    let tell = tell.clone();
    Does::new(move |n, _| {
        tell.tell(n);
        std::future::pending()
    })
}

/// A handler that is done at once.
pub(crate) fn is_done() -> Does {
    Does::new(|_, _| std::future::ready(Ok(Completion::empty())))
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Checks that what took so long, each time, began within 50 ms of its cause, but for what this machine adds at the moment.
///
/// A machine that is busy with other things delays some of them, and maybe most, but not each by much: the quickest took what
/// it takes. A worker that isn't woken looks by itself every few seconds, and is late nearly always.
pub(crate) async fn begins_at_once(what: &str, mut took: Vec<Duration>) {
    let mut naps = Vec::new();
    for _ in 0..9 {
        let before = Instant::now();
        tokio::time::sleep(ms(1)).await;
        naps.push(before.elapsed() - ms(1));
    }
    naps.sort_unstable();
    // Between the cause and the beginning, a handful of tasks and processes wake each other.
    let allowed = ms(50) + 10 * naps[naps.len() / 2];
    took.sort_unstable();
    assert!(took[0] < allowed && took[took.len() / 4] < ms(1_000), "{what}: {took:?}, and {allowed:?} are allowed");
}

/// Whether a command claims, alone or along with completions: of the scripts that have to do with who took what, `trim`
/// doesn't, and that isn't about what is pending.
pub(crate) fn is_claim(command: &support::proxy::Command) -> bool {
    let has_key = |end: &[u8]| (3..17).any(|key| command.arg(key).ends_with(end));
    command.name() == "EVALSHA" && has_key(b":pending") && has_key(b":claims")
}
