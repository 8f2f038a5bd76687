use std::{
    collections::HashMap,
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
    // Boxed: it waits for a lock, and each job's future is boxed by its service anyway.
    type Future = BoxFuture<'static, Result<Completion, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, delivery: Delivery) -> Self::Future {
        let Some(service) = self.services.get(delivery.name()).cloned() else {
            let unknown = UnknownJob { name: delivery.name().to_owned() };
            return Box::pin(async { Err(JobError::snooze(UNKNOWN_JOB_DELAY).because(unknown).into()) });
        };
        Box::pin(async move {
            // Held only until the service has taken the delivery: runs of one job don't wait for each other.
            let run = {
                let mut service = service.lock().await;
                service.ready().await?.call(delivery)
            };
            run.await
        })
    }
}

/// The reason of a job that goes back with a delay because no handler of this worker has its name: another worker, of
/// another version perhaps, may know it.
#[derive(Debug, thiserror::Error)]
#[error("no handler of this worker is registered for the job name {name:?}")]
struct UnknownJob {
    name: String,
}
