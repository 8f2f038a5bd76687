//! The stack of Tower services around a job's handler. Each layer is public and can be used by itself.
//!
//! Outermost first:
//!
//! | Layer | What it does |
//! |---|---|
//! | [`TraceLayer`] | one span per delivery, linked to the producer's |
//! | [`LeaseLayer`] | keeps the lease alive while anything below runs; when it is lost, drops what runs below |
//! | [`SettleLayer`] | an [`Outcome`] becomes one fenced transition: the only layer that writes |
//! | [`DeadLetterLayer`] | what retry declined becomes [`Outcome::Dead`] |
//! | [`RetryLayer`] | an error that may run again becomes [`Outcome::Retry`] |
//! | [`CatchPanicLayer`] | a panic, in the handler or a user's layer, becomes an error with its message |
//! | user layers | those of the worker, then those of the job |
//! | [`TimeoutLayer`] | the job's own timeout |
//! | handler | decodes the payload, injects, and calls the job's function |
//!
//! The types keep the order: [`RetryLayer`] fails with [`Declined`], which only [`DeadLetterLayer`] accepts, and from there
//! outwards nothing fails. `stack.rs` is where a worker puts them together.
//!
//! A layer of your own needs no adapter: it is a [`tower::Layer`] over a service that takes a [`Delivery`] and answers a
//! [`Completion`](crate::Completion) or any error.
//!
//! ```
//! use std::{future::Future, pin::Pin, task::{Context, Poll}, time::Instant};
//! use emq::{Completion, layer::Delivery};
//! use tower::Service;
//!
//! /// Prints how long each job took.
//! struct Stopwatch<S>(S);
//!
//! impl<S> Service<Delivery> for Stopwatch<S>
//! where
//!     S: Service<Delivery, Response = Completion>,
//!     S::Future: Send + 'static,
//! {
//!     type Response = Completion;
//!     type Error = S::Error;
//!     type Future = Pin<Box<dyn Future<Output = Result<Completion, S::Error>> + Send>>;
//!
//!     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
//!         self.0.poll_ready(cx)
//!     }
//!
//!     fn call(&mut self, delivery: Delivery) -> Self::Future {
//!         let name = delivery.name().to_owned();
//!         let run = self.0.call(delivery);
//!         Box::pin(async move {
//!             let start = Instant::now();
//!             let result = run.await;
//!             println!("{name} took {:?}", start.elapsed());
//!             result
//!         })
//!     }
//! }
//!
//! # fn example(builder: emq::WorkerBuilder) -> emq::WorkerBuilder {
//! builder.layer(tower::layer::layer_fn(Stopwatch))
//! # }
//! ```

mod catch_panic;
mod dead_letter;
mod delivery;
mod handler;
mod lease;
mod outcome;
mod retry;
mod route;
mod settle;
pub(crate) mod stack;
mod timeout;
mod trace;
mod user;

pub use self::{
    catch_panic::{CatchPanic, CatchPanicLayer, Panicked},
    dead_letter::{DeadLetter, DeadLetterLayer},
    delivery::Delivery,
    lease::{KeepLease, LeaseKeeper, LeaseLayer},
    outcome::{Declined, Ended, Outcome},
    retry::{Retry, RetryLayer},
    settle::{Settle, SettleLayer},
    timeout::{Elapsed, Timeout, TimeoutLayer},
    trace::{Trace, TraceLayer},
    user::{JobLayer, JobService},
};
pub(crate) use self::{
    handler::handler,
    lease::{Due, LeaseState, Stuck},
    route::{Route, Runner},
    settle::{Writer, write},
    user::UserLayer,
};

#[cfg(test)]
mod tests;
