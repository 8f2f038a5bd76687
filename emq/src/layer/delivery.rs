use std::sync::Arc;

use bytes::Bytes;
use http::Extensions;
use tokio_util::sync::CancellationToken;

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
    queue: QueueName,
    options: JobOptions,
    payload: Bytes,
    lease: Arc<LeaseState>,
    cancel: CancellationToken,
    extensions: Extensions,
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
        let Claimed { lease, name, payload, failures, stalled, max_attempts, headers, group, term, leased_until } =
            claimed;
        let cancel = CancellationToken::new();
        let context = JobContext::from_parts(ContextParts {
            id: lease.id(),
            token: lease.token(),
            name: name.unwrap_or_default().into(),
            queue: queue.as_str().into(),
            failures,
            stalled,
            max_attempts: max_attempts.unwrap_or(options.max_attempts),
            lease: options.lease.unwrap_or(term),
            headers: Arc::new(headers),
            group: group.map(Into::into),
            cancelled: cancel.clone(),
        });
        Self {
            context,
            queue: queue.clone(),
            options,
            payload,
            lease: Arc::new(LeaseState::new(lease, leased_until)),
            cancel,
            extensions: Extensions::new(),
        }
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
    pub fn reporting_to(self, client: &Client) -> Self {
        let store = client.store(self.queue.clone());
        self.with_reporter(Reporter::Server(store))
    }

    pub(crate) fn with_reporter(mut self, reporter: Reporter) -> Self {
        self.context = self.context.reporting_to(reporter);
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
        self.lease.lease()
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
        &self.queue
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
        &self.payload
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
        &self.options
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

    pub(crate) fn lease_state(&self) -> &Arc<LeaseState> {
        &self.lease
    }

    /// Tells the handler, and what it has moved to other threads, that this run is given up.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
