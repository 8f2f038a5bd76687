use std::{
    collections::HashMap,
    future::ready,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tower::{Service, ServiceExt as _};

use super::{Delivery, JobService};
use crate::job::{BoxError, Completion, JobError};

/// After how long a job that no handler here knows is looked at again.
const UNKNOWN_JOB_DELAY: Duration = Duration::from_secs(15);

/// Takes a delivery to the service of its job.
///
/// It is always ready. A job's own layers may not be: then that job's deliveries wait in hand, under their leases, and
/// those of other jobs don't.
#[derive(Default)]
pub(crate) struct Route {
    services: HashMap<String, Arc<Mutex<JobService>>>,
}

impl Route {
    /// Sends deliveries under any of these names to the service.
    pub(crate) fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, service: JobService) {
        let service = Arc::new(Mutex::new(service));
        for name in names {
            self.services.insert(name.to_owned(), Arc::clone(&service));
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
        match self.services.get(delivery.name()) {
            Some(service) => Routed { begin: Some((Arc::clone(service), delivery)), run: None },
            None => {
                let unknown = UnknownJob { name: delivery.name().to_owned() };
                let snoozed = JobError::snooze(UNKNOWN_JOB_DELAY).because(unknown);
                Routed { begin: None, run: Some(Box::pin(ready(Err(snoozed.into())))) }
            }
        }
    }
}

type Run = BoxFuture<'static, Result<Completion, BoxError>>;

/// The response of a [`Route`].
pub(crate) struct Routed {
    /// Until it is polled: what a job's own layers do must not hold up whoever hands out deliveries.
    begin: Option<(Arc<Mutex<JobService>>, Delivery)>,
    run: Option<Run>,
}

impl Future for Routed {
    type Output = Result<Completion, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((service, delivery)) = self.begin.take() {
            self.run = Some(begin(service, delivery, cx)?);
        }
        match &mut self.run {
            Some(run) => run.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// The run itself, or if the service isn't ready, one that waits for it first. The service is held only until it has taken
/// the delivery: runs of one job don't wait for each other.
fn begin(service: Arc<Mutex<JobService>>, delivery: Delivery, cx: &mut Context<'_>) -> Result<Run, BoxError> {
    if let Ok(mut service) = service.try_lock()
        && let Poll::Ready(ready) = service.poll_ready(cx)
    {
        return ready.map(|()| service.call(delivery));
    }
    Ok(Box::pin(async move {
        let run = {
            let mut service = service.lock().await;
            service.ready().await?.call(delivery)
        };
        run.await
    }))
}

/// The reason of a job that goes back with a delay because no handler of this worker has its name: another worker, of
/// another version perhaps, may know it.
#[derive(Debug, thiserror::Error)]
#[error("no handler of this worker is registered for the job name {name:?}")]
struct UnknownJob {
    name: String,
}
