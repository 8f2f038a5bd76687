use std::{
    collections::HashMap,
    future::ready,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tower::{Service, ServiceExt as _};

use super::{Delivery, JobService};
use crate::{
    give_way::give_way,
    job::{BoxError, Completion, JobError},
};

/// After how long a job that no handler here knows is looked at again.
const UNKNOWN_JOB_DELAY: Duration = Duration::from_secs(15);

type Run = BoxFuture<'static, Result<Completion, BoxError>>;

/// Runs the deliveries of one job.
#[derive(Clone)]
pub(crate) struct Runner(Kind);

#[derive(Clone)]
enum Kind {
    /// It takes any delivery at once.
    AlwaysReady(Arc<dyn Fn(Delivery) -> Run + Send + Sync>),
    WhenReady(Arc<Shared>),
}

/// A service that may not be ready, and is held only until it has taken a delivery: runs of one job don't wait for each
/// other.
struct Shared {
    service: Mutex<JobService>,
    /// How many runs wait for it.
    waiting: AtomicUsize,
}

impl Runner {
    /// Of a service without layers of the user: it needn't be asked whether it is ready, and nobody waits for another.
    pub(crate) fn always_ready<S>(service: S) -> Self
    where
        S: Service<Delivery, Response = Completion, Error = BoxError, Future: Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self(Kind::AlwaysReady(Arc::new(move |delivery| Box::pin(service.clone().call(delivery)))))
    }

    pub(crate) fn when_ready(service: JobService) -> Self {
        Self(Kind::WhenReady(Arc::new(Shared { service: Mutex::new(service), waiting: AtomicUsize::new(0) })))
    }

    fn begin(self, delivery: Delivery, cx: &mut Context<'_>) -> Result<Run, BoxError> {
        match self.0 {
            Kind::AlwaysReady(run) => Ok(run(delivery)),
            Kind::WhenReady(shared) => shared.begin(delivery, cx),
        }
    }
}

impl Shared {
    /// The run itself, or one that first waits until the service is ready.
    fn begin(self: Arc<Self>, delivery: Delivery, cx: &mut Context<'_>) -> Result<Run, BoxError> {
        if let Ok(mut service) = self.service.try_lock()
            && let Poll::Ready(ready) = service.poll_ready(cx)
        {
            ready?;
            let run = service.call(delivery);
            drop(service);
            if !self.is_waited_for() {
                return Ok(run);
            }
            return Ok(Box::pin(async move {
                give_way().await;
                run.await
            }));
        }
        Ok(Box::pin(self.wait(delivery)))
    }

    /// Whoever lets go of the service gives it to the next who waits, and wakes it, which may put it where no other thread
    /// can take it from. So it is to be run before the job, which may block this thread.
    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn wait(self: Arc<Self>, delivery: Delivery) -> Result<Completion, BoxError> {
        let run = {
            let _waiting = Waiting::at(&self.waiting);
            let mut service = self.service.lock().await;
            service.ready().await?.call(delivery)
        };
        if self.is_waited_for() {
            give_way().await;
        }
        run.await
    }
}

/// Counts one that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn at(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes a delivery to the runner of its job.
///
/// It is always ready. A job's own layers may not be: then that job's deliveries wait in hand, under their leases, and
/// those of other jobs don't.
#[derive(Default)]
pub(crate) struct Route {
    runners: HashMap<String, Runner>,
}

impl Route {
    /// Sends deliveries under any of these names to the runner.
    pub(crate) fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, runner: &Runner) {
        for name in names {
            self.runners.insert(name.to_owned(), runner.clone());
        }
    }
}

impl Service<Delivery> for Route {
    type Response = Completion;
    type Error = BoxError;
    type Future = Routed;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Routed {
        match self.runners.get(delivery.name()) {
            Some(runner) => Routed { begin: Some((runner.clone(), delivery)), run: None },
            None => {
                let unknown = UnknownJob { name: delivery.name().to_owned() };
                let snoozed = JobError::snooze(UNKNOWN_JOB_DELAY).because(unknown);
                Routed { begin: None, run: Some(Box::pin(ready(Err(snoozed.into())))) }
            }
        }
    }
}

/// The response of a [`Route`].
pub(crate) struct Routed {
    /// Until it is polled: what a job's own layers do must not hold up whoever hands out deliveries.
    begin: Option<(Runner, Delivery)>,
    run: Option<Run>,
}

impl Future for Routed {
    type Output = Result<Completion, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((runner, delivery)) = self.begin.take() {
            self.run = Some(runner.begin(delivery, cx)?);
        }
        match &mut self.run {
            Some(run) => run.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// The reason of a job that goes back with a delay because no handler of this worker has its name: another worker, of
/// another version perhaps, may know it.
#[derive(Debug, thiserror::Error)]
#[error("no handler of this worker is registered for the job name {name:?}")]
struct UnknownJob {
    name: String,
}
