//! The innermost service: decode, inject, run. Decoding is down here so that a poison payload is an ordinary, permanent
//! error of its job.

use std::sync::Arc;

use tower::{Service, service_fn};

use super::Delivery;
use crate::{
    inject::Scope,
    job::{Completion, Handler, JobError, decode},
};

/// The service that runs jobs of the type `J` with this state.
pub(crate) fn handler<S, J>(
    state: Arc<S>,
) -> impl Service<Delivery, Response = Completion, Error = JobError, Future: Send + 'static> + Clone + Send + Sync + 'static
where
    S: Send + Sync + 'static,
    J: Handler<S>,
{
    service_fn(move |delivery: Delivery| {
        let scope = Scope::shared(delivery.context().clone(), Arc::clone(&state));
        async move {
            let job = decode::<J>(delivery.payload())?;
            // A run that is dropped has been given up, whoever drops it: what it has moved to other threads must learn
            // of it.
            let given_up = GiveUp(Some(delivery));
            let result = job.run(scope).await;
            given_up.disarm();
            result
        }
    })
}

/// Gives a run up when it is dropped.
struct GiveUp(Option<Delivery>);

impl GiveUp {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        if let Some(delivery) = &self.0 {
            delivery.give_up();
        }
    }
}
