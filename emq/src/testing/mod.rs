//! Feature `testing`: run a job without a server, or start a private server for a test.

mod job;
mod server;

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

pub use self::{
    job::JobTest,
    server::{ServerError, TestServer},
};
use crate::{
    job::{JobOptions, Minted, QueueName},
    layer::Delivery,
    store::{Claimed, Lease},
};

/// The first delivery of a job of this name, with the default options, for a test of a layer.
///
/// ```
/// let delivery = emq::testing::delivery("enroll");
/// assert_eq!((delivery.name(), delivery.token()), ("enroll", 1));
/// ```
#[must_use]
pub fn delivery(name: &str) -> Delivery {
    delivery_with(name, JobOptions::new())
}

/// The first delivery of a job of this name and these options, for a test of a layer.
///
/// ```
/// use emq::{JobOptions, testing};
///
/// let delivery = testing::delivery_with("enroll", JobOptions::new().max_attempts(3));
/// assert_eq!(delivery.context().max_attempts(), 3);
/// ```
#[must_use]
pub fn delivery_with(name: &str, options: JobOptions) -> Delivery {
    let queue = QueueName::new(options.queue).unwrap_or_else(|_| QueueName::for_test());
    Delivery::new(&queue, claimed(name, b"{}".to_vec()), options)
}

pub(crate) fn claimed(name: &str, payload: Vec<u8>) -> Claimed {
    let term = Duration::from_secs(30);
    Claimed {
        lease: Lease::new(Minted::next(0).0, 1),
        name: Some(name.to_owned()),
        payload: payload.into(),
        failures: 0,
        stalled: 0,
        max_attempts: None,
        headers: HashMap::new(),
        group: None,
        term,
        leased_until: Instant::now() + term,
    }
}

#[cfg(test)]
mod tests;
