use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use super::{Client, EnqueueError};
use crate::{
    job::{Job, JobId, LaneName, NameError, QueueName, Unique, encode},
    store::{Due, Item, Template},
};

/// The header that carries the producer's trace context.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A job with what is to be said about it, for an [`enqueue_many`](Client::enqueue_many) whose jobs differ in more than
/// their payloads.
///
/// # Examples
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendEmailJob { to: String }
/// # impl emq::Job for SendEmailJob { const NAME: &'static str = "send_email"; }
/// use std::time::Duration;
/// use emq::Draft;
///
/// let drafts = ["ada", "grace"].iter().enumerate().map(|(n, name)| {
///     Draft::of(SendEmailJob { to: format!("{name}@example.org") }).unique(*name).delay(Duration::from_secs(n as u64))
/// });
/// # let _ = drafts.count();
/// ```
#[must_use = "a draft is enqueued with `Client::enqueue_many`"]
pub struct Draft<J> {
    job: J,
    id: Option<JobId>,
    queue: Option<String>,
    unique: Option<Unique>,
    due: Due,
    max_attempts: Option<u32>,
    priority: i32,
    group: Option<String>,
    expires_in: Option<Duration>,
    headers: BTreeMap<String, String>,
}

impl<J> fmt::Debug for Draft<J> {
    // Not the payload: it may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("id", &self.id)
            .field("queue", &self.queue)
            .field("due", &self.due)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

/// What [`Client::enqueue_many`] takes: jobs, or [`Draft`]s of jobs.
///
/// # Examples
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
/// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
/// use emq::{Draft, IntoDraft};
///
/// let draft: Draft<PingJob> = PingJob {}.into_draft();
/// ```
pub trait IntoDraft {
    /// The type of the job.
    type Job: Job;

    /// Makes a draft of it.
    fn into_draft(self) -> Draft<Self::Job>;
}

impl<J: Job> IntoDraft for J {
    type Job = J;

    fn into_draft(self) -> Draft<J> {
        Draft::of(self)
    }
}

impl<J: Job> IntoDraft for Draft<J> {
    type Job = J;

    fn into_draft(self) -> Self {
        self
    }
}

impl<J: Job> Draft<J> {
    /// A job of which nothing more is said.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// ```
    pub fn of(job: J) -> Self {
        Self {
            job,
            id: None,
            queue: None,
            unique: None,
            due: Due::Now,
            max_attempts: None,
            priority: J::OPTIONS.priority,
            group: None,
            expires_in: None,
            headers: BTreeMap::new(),
        }
    }

    /// Runs it after `delay`, counted from when the server takes it; at once by default. Rounded up to whole ms.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.delay(std::time::Duration::from_secs(60));
    /// ```
    pub fn delay(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Runs it at `time`, by the server's clock; at once if that has passed.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.at(std::time::SystemTime::now());
    /// ```
    pub fn at(mut self, time: SystemTime) -> Self {
        self.due = Due::At(time);
        self
    }

    /// Gives it this id instead of a new one. An id belongs to one job of its queue: sent again it is a duplicate, while
    /// the job is there and for its retention after it has ended. With another payload it is
    /// [`Conflict`](EnqueueError::Conflict) while the job is there; of a job that has ended the payload isn't kept.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.id("JOB0JZGkP9AMvv".parse().unwrap());
    /// ```
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Gives it a deduplication key, instead of the one of its type: while a job of this queue with the same key is
    /// unfinished, another is a duplicate of it. The key is free again when the job has ended or is a dead letter. A
    /// [`Unique`] says otherwise.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.unique("invoice-42");
    /// ```
    pub fn unique(mut self, unique: impl Into<Unique>) -> Self {
        self.unique = Some(unique.into());
        self
    }

    /// After how many failures it is buried, instead of its type's number; 0 counts as 1.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.max_attempts(1);
    /// ```
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(max_attempts.max(1));
        self
    }

    /// Its priority, instead of its type's: the lower runs first; 0 by default. Within one priority the older id runs first.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.priority(-10);
    /// ```
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Puts it into the lane of this group, such as a tenant: lanes are served in turn, so that none waits for another's
    /// backlog. A name is as that of a queue; by default a job waits in the flat line, which is served as one lane.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.group("tenant-7");
    /// ```
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Buries it with the reason `expired` instead of running it, if no run has begun within `wait` of its enqueue, by the
    /// server's clock; never by default. Rounded up to whole ms.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.expires_in(std::time::Duration::from_secs(30));
    /// ```
    pub fn expires_in(mut self, wait: Duration) -> Self {
        self.expires_in = Some(wait);
        self
    }

    /// Sends a header along, which the handler reads with [`JobContext::header`](crate::JobContext::header).
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.header("tenant", "north");
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Puts it into this queue instead of its type's.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
    /// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
    /// let draft = emq::Draft::of(PingJob {});
    /// let draft = draft.queue("north");
    /// ```
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Whether the user gave it an id, so that it may rightly be there already.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    pub(super) fn queue_name(&self) -> Result<QueueName, NameError> {
        QueueName::new(self.queue.as_deref().unwrap_or(J::OPTIONS.queue))
    }

    /// Encodes it for the wire, under its own id or else `minted`.
    pub(super) fn encode(&self, client: &Client, minted: JobId) -> Result<Item, EnqueueError> {
        let (payload, headers) = self.encode_content(client, client.traceparent())?;
        Ok(Item {
            id: self.id.unwrap_or(minted),
            due: self.due,
            payload,
            unique: self.unique.clone().or_else(|| self.job.unique()),
            priority: self.priority,
            group: self.lane()?,
            expires_in: self.expires_in,
            name: Some(J::NAME),
            max_attempts: self.max_attempts,
            headers,
        })
    }

    /// What the jobs of a recurring job have in common. None of them is enqueued by what registers it, so the trace of that
    /// isn't theirs.
    pub(crate) fn template(&self, client: &Client) -> Result<Template, EnqueueError> {
        let (payload, headers) = self.encode_content(client, None)?;
        Ok(Template {
            name: J::NAME,
            payload,
            priority: self.priority,
            group: self.lane()?,
            max_attempts: self.max_attempts,
            headers,
            expires_in: self.expires_in,
        })
    }

    fn lane(&self) -> Result<Option<LaneName>, EnqueueError> {
        self.group.as_deref().map(LaneName::new).transpose().map_err(EnqueueError::Group)
    }

    /// The payload and the headers, which aren't too large together.
    fn encode_content(
        &self,
        client: &Client,
        traceparent: Option<String>,
    ) -> Result<(Bytes, Option<String>), EnqueueError> {
        let payload = encode(&self.job)?;
        let headers = self.encode_headers(traceparent)?;
        let size = payload.len() + headers.as_ref().map_or(0, String::len);
        let limit = client.inner.max_payload;
        if size > limit {
            return Err(EnqueueError::TooLarge { size, limit });
        }
        Ok((payload.into(), headers))
    }

    fn encode_headers(&self, traceparent: Option<String>) -> Result<Option<String>, EnqueueError> {
        let traceparent = traceparent.filter(|_| !self.headers.contains_key(TRACEPARENT));
        if self.headers.is_empty() && traceparent.is_none() {
            return Ok(None);
        }
        let traceparent = traceparent.as_deref().map(|context| (TRACEPARENT, context));
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: BTreeMap<_, _> = headers.chain(traceparent).collect();
        Ok(Some(serde_json::to_string(&headers)?))
    }
}
