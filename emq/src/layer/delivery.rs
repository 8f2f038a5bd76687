use std::sync::Arc;

use bytes::Bytes;
use http::Extensions;

use super::LeaseState;
use crate::{
    client::Client,
    inject::{ContextParts, JobContext, Reporter},
    job::{JobId, JobOptions, QueueName},
    store::{Claimed, Lease},
};

/// One run of a job on its way through the stack: the request that every layer sees.
///
/// # Clone
///
/// A clone is cheap: it shares the payload and stands for the same run.
///
/// # Examples
///
/// ```
/// use emq::layer::Delivery;
///
/// fn describe(delivery: &Delivery) -> String {
///     format!("{} {} under token {}", delivery.name(), delivery.id(), delivery.token())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Delivery {
    context: JobContext,
    inner: Arc<Inner>,
    extensions: Extensions,
}

/// Shared by the clones: a delivery is moved through many layers, and small.
#[derive(Debug)]
struct Inner {
    options: JobOptions,
    payload: Bytes,
    lease: LeaseState,
}

impl Delivery {
    /// The delivery of a job that was claimed from `queue`, for a loop of your own around some of the layers.
    ///
    /// ```
    /// # fn example(queue: emq::Queue, claimed: emq::Claimed) {
    /// use emq::{JobOptions, layer::Delivery};
    ///
    /// let delivery = Delivery::new(queue.name(), claimed, JobOptions::new());
    /// assert_eq!(delivery.queue(), queue.name());
    /// # }
    /// ```
    #[must_use]
    pub fn new(queue: &QueueName, claimed: Claimed, options: JobOptions) -> Self {
        Self::with_reporter(queue, claimed, options, Reporter::recorder())
    }

    /// `reporter`: where goes what the run tells of itself.
    pub(crate) fn with_reporter(queue: &QueueName, claimed: Claimed, options: JobOptions, reporter: Reporter) -> Self {
        let Claimed { lease, name, payload, failures, stalled, max_attempts, headers, group, term, leased_until } =
            claimed;
        let context = JobContext::from_parts(ContextParts {
            id: lease.id(),
            token: lease.token(),
            name: name.unwrap_or_default(),
            queue: queue.clone(),
            failures,
            stalled,
            max_attempts: max_attempts.unwrap_or(options.max_attempts),
            lease: options.lease.unwrap_or(term),
            headers,
            group,
            reporter,
        });
        let inner = Inner { options, payload, lease: LeaseState::new(lease, leased_until) };
        Self { context, inner: Arc::new(inner), extensions: Extensions::new() }
    }

    /// The same, and what the run tells of itself is kept by the server: progress and lines of its log. Else it is kept for
    /// [`JobContext::reports`] alone.
    ///
    /// ```no_run
    /// # fn example(client: emq::Client, delivery: emq::layer::Delivery) {
    /// let delivery = delivery.reporting_to(&client);
    /// # }
    /// ```
    #[must_use]
    pub fn reporting_to(mut self, client: &Client) -> Self {
        let store = client.store(self.queue().clone());
        self.context = self.context.reporting_to(Reporter::Server(store));
        self
    }

    /// The job's id.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{}", delivery.id());
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> JobId {
        self.context.id()
    }

    /// The fencing token of this run.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{}", delivery.token());
    /// # }
    /// ```
    #[must_use]
    pub fn token(&self) -> u64 {
        self.context.fence()
    }

    /// The right to settle the job.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// assert_eq!(delivery.lease().id(), delivery.id());
    /// # }
    /// ```
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.inner.lease.lease()
    }

    /// The name the job stands under in the queue; empty if it has none.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{}", delivery.name());
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.context.name()
    }

    /// The queue it was claimed from.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{}", delivery.queue());
    /// # }
    /// ```
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        self.context.queue_name()
    }

    /// The encoded payload.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{} bytes", delivery.payload().len());
    /// # }
    /// ```
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.inner.payload
    }

    /// A header that the producer gave the job.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{:?}", delivery.header("tenant"));
    /// # }
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.context.header(name)
    }

    /// The options of the job's type.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{:?}", delivery.options().timeout);
    /// # }
    /// ```
    #[must_use]
    pub fn options(&self) -> &JobOptions {
        &self.inner.options
    }

    /// What the handler will see of this run: failures so far, headers, cancellation.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// println!("{} failures so far", delivery.context().failures());
    /// # }
    /// ```
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// What layers have attached to this run for each other.
    ///
    /// ```
    /// # fn example(delivery: emq::layer::Delivery) {
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// let tenant = delivery.extensions().get::<Tenant>();
    /// # }
    /// ```
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// What layers have attached to this run, to attach more.
    ///
    /// ```
    /// # fn example(mut delivery: emq::layer::Delivery) {
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// delivery.extensions_mut().insert(Tenant("north".into()));
    /// # }
    /// ```
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    pub(crate) fn lease_state(&self) -> &LeaseState {
        &self.inner.lease
    }

    /// Tells the handler, and what it has moved to other threads, that this run is given up.
    pub(crate) fn give_up(&self) {
        self.context.given_up().close();
    }
}
