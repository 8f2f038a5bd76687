//! The operator: whoever looks after the queue while everything fails. It removes jobs, revives dead letters, and pauses.
//!
//! Its calls are never repeated behind its back, so that each answer says what this one call did.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use emq::{BoxError, CallError, JobId, Listed, Place, Queue, Removed, Revived};
use tokio::{sync::mpsc::UnboundedReceiver, time::sleep};

use crate::{
    book::{Book, Removal},
    jobs::{End, QUEUE},
    strikes::{Blow, Strike},
    worker,
};

/// The wait between two tries.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub(crate) struct Operator {
    queue: Queue,
    book: Arc<Book>,
}

impl Operator {
    /// Not through a proxy: what a line held back would be carried out long after it was given up.
    pub(crate) async fn connect(url: &str, book: Arc<Book>) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::ZERO).connect().await?;
        Ok(Self { queue: client.queue(QUEUE)?, book })
    }

    /// Does what it is told, one after the other, until nobody is left to tell it anything.
    pub(crate) async fn run(self, mut told: UnboundedReceiver<Blow>) {
        while let Some(Blow { strike, number, .. }) = told.recv().await {
            match strike {
                Strike::Revive => self.revive_dead(number).await,
                _ => self.remove_dead(number).await,
            }
        }
    }

    /// Removes a job that may wait, and asks until it is known what became of it.
    pub(crate) async fn withdraw(&self, id: JobId) {
        self.remove(id, Removal::Possible).await;
    }

    /// Removes some dead letters. Nobody else does anything to them: one that is gone without an answer was removed.
    async fn remove_dead(&self, number: u64) {
        for letter in self.some_dead(number).await {
            self.remove(letter.id, Removal::Certain).await;
        }
    }

    /// Revives some dead letters. They will die again.
    async fn revive_dead(&self, number: u64) {
        for letter in self.some_dead(number).await {
            let id = letter.id;
            match self.queue.revive(id).await {
                Ok(Revived::Revived) => Book::count(&self.book.revived),
                Ok(other) => self.book.violation_of(id, format!("a dead letter can't be revived: {other:?}")),
                Err(CallError::Unknown { .. }) => Book::count(&self.book.perhaps_revived),
                Err(error) if is_passing(&error) => {}
                Err(error) => self.book.violation_of(id, format!("a dead letter can't be revived: {error}")),
            }
        }
    }

    /// `without_answer` is what it means if the job is gone after a call that wasn't answered.
    async fn remove(&self, id: JobId, without_answer: Removal) {
        let mut answered = true;
        loop {
            let removed = self.queue.remove(id).await;
            answered &= !matches!(removed, Err(CallError::Unknown { .. }));
            let flow = match removed {
                Ok(Removed::Removed) => {
                    self.book.remove(id, Removal::Certain);
                    ControlFlow::Break(())
                }
                Ok(Removed::Gone) if !answered => {
                    self.book.remove(id, without_answer);
                    ControlFlow::Break(())
                }
                Ok(Removed::Active | Removed::Gone) => ControlFlow::Break(()),
                Err(error) if is_passing(&error) => ControlFlow::Continue(()),
                other => {
                    self.book.violation_of(id, format!("{id} can't be removed: {other:?}"));
                    ControlFlow::Break(())
                }
            };
            if flow.is_break() {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Some dead letters in a row; none while the server is away.
    async fn some_dead(&self, number: u64) -> Vec<Listed> {
        let Ok(counts) = self.queue.counts().await else { return Vec::new() };
        let (offset, count) = (number * 7 % counts.dead.max(1), 1 + number % 4);
        let listed = self.queue.list(Place::Dead, offset, usize::try_from(count).unwrap_or(1)).await;
        // One that has expired would succeed.
        let jobs = self.book.jobs();
        let will_die =
            |letter: &Listed| jobs.get(&letter.id).is_some_and(|entry| matches!(entry.end, End::Dead { .. }));
        listed.unwrap_or_default().into_iter().filter(will_die).collect()
    }
}

/// Whether it is no fault that a call isn't carried out: the server is away, or lets nobody write.
pub(crate) fn is_passing(error: &CallError) -> bool {
    error.is_transient() || matches!(error, CallError::Refused { code, .. } if code == "OOM")
}
