//! The operator: whoever looks after the queues while everything fails. It removes and cancels jobs, revives dead letters,
//! drains and purges what may be thrown away, and sets again what is set already.
//!
//! Its calls are never repeated behind its back, so that each answer says what this one call did.

use std::{
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{
    BoxError, CallError, Cancelled, Client, JobId, JobState, Listed, Place, Purge, PurgeError, Queue, RecurringError,
    Removed, Revived, Upserted,
};
use tokio::{sync::mpsc::UnboundedReceiver, time::sleep};

use crate::{
    book::{Book, Taken},
    jobs::{End, QUEUE, SCRAP},
    lanes, slots,
    strikes::{Blow, Strike},
    worker,
};

/// The wait between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// What an operator does when he is told to.
pub(crate) const STRIKES: &[Strike] =
    &[Strike::Revive, Strike::RemoveDead, Strike::Drain, Strike::Purge, Strike::Tune, Strike::Register];

/// Where jobs are purged from.
const PURGED: [Place; 4] = [Place::Pending, Place::Scheduled, Place::Parked, Place::Dead];

#[derive(Clone, Debug)]
pub(crate) struct Operator {
    client: Client,
    queue: Queue,
    scrap: Queue,
    book: Arc<Book>,
}

impl Operator {
    /// Not through a proxy: what a line held back would be carried out long after it was given up.
    pub(crate) async fn connect(url: &str, book: Arc<Book>) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::ZERO).connect().await?;
        Ok(Self { queue: client.queue(QUEUE)?, scrap: client.queue(SCRAP)?, client, book })
    }

    /// Does what it is told, one after the other, until nobody is left to tell it anything.
    pub(crate) async fn run(self, mut told: UnboundedReceiver<Blow>) {
        while let Some(Blow { strike, number, .. }) = told.recv().await {
            match strike {
                Strike::Revive => self.revive_dead(number).await,
                Strike::RemoveDead => self.remove_dead(number).await,
                Strike::Drain => self.scrap(self.scrap.drain()).await,
                Strike::Purge => self.scrap(self.scrap.purge(PURGED[usize::try_from(number).unwrap_or(0) % 4])).await,
                Strike::Tune => self.tune().await,
                Strike::Register => self.register().await,
                _ => {}
            }
        }
    }

    /// Removes a job that may wait, and asks until it is known what became of it.
    pub(crate) async fn withdraw(&self, id: JobId) {
        self.remove(id, Taken::PerhapsRemoved).await;
    }

    /// Cancels a job that may wait or run, and asks until it is known how it ended.
    pub(crate) async fn cancel(self, id: JobId) {
        loop {
            match self.queue.cancel(id).await {
                Ok(Cancelled::AtOnce) => return self.book.take(id, Taken::Cancelled),
                Ok(Cancelled::Asked) => {
                    Book::count(&self.book.interrupted);
                    // Whatever its token is now: nobody may have a newer one. Of a job that has ended there is none.
                    if let Ok(Some(stored)) = self.queue.get(id).await
                        && stored.attempts > 0
                    {
                        self.book.last_token(id, stored.attempts);
                    }
                    break;
                }
                Ok(Cancelled::Gone) => break,
                Err(error) if is_passing(&error) => sleep(PAUSE).await,
                other => return self.book.violation_of(id, format!("{id} can't be cancelled: {other:?}")),
            }
        }
        loop {
            match self.queue.state(id).await {
                Ok(Some(JobState::Cancelled)) => return self.book.take(id, Taken::Cancelled),
                // It was done before it could be dropped. That is forgotten after a minute.
                Ok(Some(JobState::Finished) | None) => return,
                Ok(Some(JobState::Dead | JobState::Removed | JobState::Other)) => {
                    return self
                        .book
                        .violation_of(id, format!("{id} was cancelled, and is neither done nor cancelled"));
                }
                Ok(Some(_)) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return self.book.violation_of(id, format!("{id} has no state: {error}")),
            }
            sleep(PAUSE).await;
        }
    }

    /// Throws jobs away, a thousand at a time, and counts them.
    async fn scrap(&self, mut purge: Purge) {
        loop {
            match purge.next().await {
                Ok(Some(purged)) => _ = self.book.scrapped.fetch_add(purged.removed, Ordering::Relaxed),
                Ok(None) => return,
                Err(PurgeError::Call(error)) if is_passing(&error) => {
                    if matches!(error, CallError::Unknown { .. }) {
                        Book::count(&self.book.perhaps_scrapped);
                    }
                    return;
                }
                Err(error) => return self.book.violation(format!("jobs can't be purged: {error}")),
            }
        }
    }

    /// Sets all limits, weights and rates again.
    async fn tune(&self) {
        if let Err(error) = lanes::set(&self.client).await
            && !error.downcast_ref().is_some_and(is_passing)
        {
            self.book.violation(format!("a lane can't be set: {error}"));
        }
    }

    /// Registers the recurring jobs again.
    async fn register(&self) {
        match slots::register(&self.queue, &self.book, Upserted::Unchanged).await {
            Ok(()) => {}
            Err(RecurringError::Call(error)) if is_passing(&error) => {}
            Err(error) => self.book.violation(format!("a recurring job can't be registered again: {error}")),
        }
    }

    /// Removes some dead letters. Nobody else does anything to them: one that is gone without an answer was removed.
    async fn remove_dead(&self, number: u64) {
        for letter in self.some_dead(number).await {
            self.remove(letter.id, Taken::Removed).await;
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
    async fn remove(&self, id: JobId, without_answer: Taken) {
        let mut answered = true;
        loop {
            let removed = self.queue.remove(id).await;
            answered &= !matches!(removed, Err(CallError::Unknown { .. }));
            let flow = match removed {
                Ok(Removed::Removed) => {
                    self.book.take(id, Taken::Removed);
                    ControlFlow::Break(())
                }
                Ok(Removed::Gone) if !answered => {
                    self.book.take(id, without_answer);
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
