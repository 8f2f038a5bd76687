//! What becomes of jobs, as it happens.

use futures_util::{Stream, stream};
use serde::Deserialize;

use super::Queue;
use crate::{
    job::JobId,
    store::{CallError, Listening, Notice},
};

/// What became of a job of a queue, told by the transition itself.
///
/// Told is whatever ends a job or interrupts its run, its progress, and an enqueue that is merged into another job or waits
/// behind it. Other enqueues, claims, promotions and renewals aren't: they are the greater part, and each event costs the
/// server about a microsecond.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// use emq::Event;
///
/// let mut events = queue.events().await?;
/// while let Some(event) = events.next().await {
///     match event {
///         Event::Dead { id, reason } => println!("{id} is a dead letter: {}", reason.unwrap_or_default()),
///         Event::Gap => println!("something was missed: look with `counts`"),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It is done.
    Completed {
        /// The job.
        id: JobId,
    },
    /// A run failed, and it is to run again.
    Retried {
        /// The job.
        id: JobId,
    },
    /// It asked to run later.
    Snoozed {
        /// The job.
        id: JobId,
    },
    /// A worker gave it back.
    Released {
        /// The job.
        id: JobId,
    },
    /// Its lease ran out, and it waits again.
    Stalled {
        /// The job.
        id: JobId,
    },
    /// It is a dead letter: it failed for good, stalled too often, or expired.
    Dead {
        /// The job.
        id: JobId,
        /// What its [`last_error`](crate::Stored::last_error) is: `expired`, `stalled`, or the text of the error that it
        /// failed with. `None` if another implementation has buried it.
        reason: Option<String>,
    },
    /// A dead letter waits again.
    Revived {
        /// The job.
        id: JobId,
    },
    /// It was cancelled, and is gone.
    Cancelled {
        /// The job.
        id: JobId,
    },
    /// It was removed, or was a dead letter for as long as such are kept.
    Removed {
        /// The job.
        id: JobId,
    },
    /// It does by now what a job was to do that was enqueued with the same deduplication key.
    Replaced {
        /// The job that was there before.
        id: JobId,
    },
    /// It was enqueued, and waits until another job has ended, which holds its deduplication key.
    Parked {
        /// The job.
        id: JobId,
        /// The job that holds the key; `None` if the message doesn't say so.
        behind: Option<JobId>,
    },
    /// A run has told how far it is.
    Progress {
        /// The job.
        id: JobId,
        /// What it told.
        progress: serde_json::Value,
    },
    /// What this version doesn't know, of a later one or of another implementation: the text of the message.
    Other {
        /// The whole message.
        text: String,
    },
    /// Events may have been missed: the connection was lost and made anew, or they came faster than they were taken.
    Gap,
}

impl Event {
    /// The job, if it is about one.
    ///
    /// ```
    /// assert_eq!(emq::Event::Gap.id(), None);
    /// ```
    #[must_use]
    pub fn id(&self) -> Option<JobId> {
        match self {
            Self::Completed { id }
            | Self::Retried { id }
            | Self::Snoozed { id }
            | Self::Released { id }
            | Self::Stalled { id }
            | Self::Dead { id, .. }
            | Self::Revived { id }
            | Self::Cancelled { id }
            | Self::Removed { id }
            | Self::Replaced { id }
            | Self::Parked { id, .. }
            | Self::Progress { id, .. } => Some(*id),
            Self::Other { .. } | Self::Gap => None,
        }
    }

    fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Told<'a> {
            event: &'a str,
            job: &'a str,
            #[serde(default)]
            progress: serde_json::Value,
            #[serde(default)]
            reason: serde_json::Value,
            #[serde(default)]
            behind: serde_json::Value,
        }
        let other = || Self::Other { text: text.to_owned() };
        let Ok(Told { event, job, progress, reason, behind }) = serde_json::from_str(text) else { return other() };
        let Ok(id) = job.parse() else { return other() };
        match event {
            "completed" => Self::Completed { id },
            "retried" => Self::Retried { id },
            "snoozed" => Self::Snoozed { id },
            "released" => Self::Released { id },
            "stalled" => Self::Stalled { id },
            "dead" => Self::Dead { id, reason: reason.as_str().map(str::to_owned) },
            "revived" => Self::Revived { id },
            "cancelled" => Self::Cancelled { id },
            "removed" => Self::Removed { id },
            "replaced" => Self::Replaced { id },
            "parked" => Self::Parked { id, behind: behind.as_str().and_then(|behind| behind.parse().ok()) },
            "progress" => Self::Progress { id, progress },
            _ => other(),
        }
    }
}

/// The events of a queue, from [`Queue::events`] on.
///
/// Up to 1 024 wait for this listener; what comes beyond is missed, and told as [`Event::Gap`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// let mut events = queue.events().await?;
/// let first = events.next().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Events {
    listening: Listening,
}

impl Events {
    /// The next event; `None` once the client has been closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future misses nothing.
    ///
    /// ```no_run
    /// # async fn example(mut events: emq::Events) {
    /// while let Some(event) = events.next().await {
    ///     println!("{event:?}");
    /// }
    /// # }
    /// ```
    pub async fn next(&mut self) -> Option<Event> {
        Some(match self.listening.next().await? {
            Notice::Message(text) => Event::read(&text),
            Notice::Gap => Event::Gap,
        })
    }

    /// The same as a stream.
    ///
    /// ```no_run
    /// # async fn example(events: emq::Events) {
    /// let stream = std::pin::pin!(events.into_stream());
    /// # let _ = stream;
    /// # }
    /// ```
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send + 'static {
        stream::unfold(self, async |mut events| Some((events.next().await?, events)))
    }
}

impl Queue {
    /// What becomes of this queue's jobs, as it happens; see [`Event`] for what is told. All listeners of a client share one
    /// connection, which is made anew when it is lost: then there is an [`Event::Gap`]. Nothing of what happened before is
    /// told.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be reached, or doesn't let this user listen.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
    /// let mut events = queue.events().await?;
    /// println!("{:?}", events.next().await);
    /// # Ok(()) }
    /// ```
    pub async fn events(&self) -> Result<Events, CallError> {
        let (_, listening) = self.client.listen(self.store.events_channel()).await?;
        Ok(Events { listening })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_another_implementation_is_told_as_it_is() {
        let id: JobId = "JOB0JZGkP9AMvv".parse().unwrap();
        let text = |event: &str| format!(r#"{{"event":"{event}","job":"{id}","more":[1]}}"#);
        assert_eq!(Event::read(&text("completed")), Event::Completed { id });
        for other in
            [text("waits"), "not JSON".into(), r#"{"event":"dead"}"#.into(), r#"{"event":"dead","job":7}"#.into()]
        {
            assert_eq!(Event::read(&other), Event::Other { text: other.clone() }, "{other}");
        }
        assert_eq!(Event::read(&text("dead")), Event::Dead { id, reason: None });
        assert_eq!(Event::read(&text("parked")), Event::Parked { id, behind: None });
        let progress = Event::read(&format!(r#"{{"event":"progress","job":"{id}","progress":[3,10]}}"#));
        assert_eq!(progress, Event::Progress { id, progress: serde_json::json!([3, 10]) });
    }
}
