//! The producers: tasks of this process that enqueue all kinds of jobs, and don't let go of one before the server has said
//! what became of it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{Admission, BoxError, Client, Draft, EnqueueError, Job, JobId, Ticket};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::sleep;

use crate::{
    book::{Book, Entry},
    jobs::{HangJob, Plan, WorkJob},
    worker,
};

/// How many deduplication keys there are.
const KEYS: u32 = 30;

/// What is to be enqueued.
#[derive(Clone, Debug)]
struct Order<J> {
    job: J,
    delay: Option<Duration>,
    max_attempts: Option<u32>,
    entry: Entry,
}

impl<J: Job + Clone> Order<J> {
    fn draft(&self, id: Option<JobId>) -> Draft<J> {
        let mut draft = Draft::of(self.job.clone());
        if let Some(id) = id {
            draft = draft.id(id);
        }
        if let Some(delay) = self.delay {
            draft = draft.delay(delay);
        }
        if let Some(key) = &self.entry.key {
            draft = draft.unique(key);
        }
        if let Some(max_attempts) = self.max_attempts {
            draft = draft.max_attempts(max_attempts);
        }
        draft
    }

    async fn send(&self, client: &Client, id: Option<JobId>) -> Result<Ticket<J>, EnqueueError> {
        let mut enqueue = client.enqueue(self.job.clone());
        if let Some(id) = id {
            enqueue = enqueue.id(id);
        }
        if let Some(delay) = self.delay {
            enqueue = enqueue.delay(delay);
        }
        if let Some(key) = &self.entry.key {
            enqueue = enqueue.unique(key);
        }
        if let Some(max_attempts) = self.max_attempts {
            enqueue = enqueue.max_attempts(max_attempts);
        }
        enqueue.await
    }
}

/// One producer.
pub(crate) struct Producer {
    client: Client,
    book: Arc<Book>,
    chance: StdRng,
}

impl Producer {
    pub(crate) async fn connect(url: &str, book: Arc<Book>, seed: u64) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::from_millis(400)).connect().await?;
        Ok(Self { client, book, chance: StdRng::seed_from_u64(seed) })
    }

    /// Enqueues until the book is over, and what is left unknown until it isn't.
    pub(crate) async fn run(mut self) {
        while !self.book.over.load(Ordering::Relaxed) {
            let pause = self.chance.random_range(20..120);
            sleep(Duration::from_millis(pause)).await;
            if self.book.full.load(Ordering::Relaxed) {
                continue;
            }
            match self.chance.random_range(0..20) {
                0 => {
                    let times = self.chance.random_range(1..3);
                    let what = format!("hang {times} times");
                    let entry = Entry { what, dies_after: None, key: None };
                    self.one(Order { job: HangJob { times }, delay: None, max_attempts: None, entry }).await;
                }
                1..=13 => {
                    let order = self.order();
                    self.one(order).await;
                }
                _ => {
                    let orders = (0..self.chance.random_range(2..14)).map(|_| self.order()).collect();
                    self.many(orders).await;
                }
            }
        }
        self.client.close().await;
    }

    /// A job by chance.
    fn order(&mut self) -> Order<WorkJob> {
        let chance = &mut self.chance;
        let plan = match chance.random_range(0..1000) {
            0..20 => Plan::Succeed { ms: chance.random_range(1_800..3_500) },
            20..26 => Plan::Block { ms: chance.random_range(1_800..3_000) },
            26..120 => Plan::Flaky { failures: chance.random_range(1..4) },
            120..180 => Plan::Panic { failures: chance.random_range(1..3) },
            180..240 => Plan::Snooze { times: chance.random_range(1..4) },
            240..290 => Plan::FailLate,
            290..305 => Plan::Fatal,
            305..320 => Plan::Hopeless,
            320..330 => Plan::Doomed,
            _ => Plan::Succeed { ms: chance.random_range(0..60) },
        };
        let dies_after = plan.dies_after();
        let key =
            (dies_after.is_none() && chance.random_bool(0.2)).then(|| format!("key-{}", chance.random_range(0..KEYS)));
        let delay = chance.random_bool(0.1).then(|| Duration::from_millis(chance.random_range(50..3_000)));
        let max_attempts = dies_after.filter(|attempts| *attempts > 1);
        let entry = Entry { what: format!("{plan:?}"), dies_after, key };
        Order { job: WorkJob { plan }, delay, max_attempts, entry }
    }

    async fn one<J: Job + Clone>(&mut self, order: Order<J>) {
        let sent = order.send(&self.client, None).await;
        self.resolve(&order, None, sent).await;
    }

    async fn many<J: Job + Clone>(&mut self, orders: Vec<Order<J>>) {
        let sent = self.client.enqueue_many(orders.iter().map(|order| order.draft(None))).await;
        let outcomes = match sent {
            Ok(tickets) => tickets.into_iter().map(Ok).collect(),
            Err(error) => error.outcomes,
        };
        if outcomes.len() != orders.len() {
            self.book.violation(format!("{} jobs were sent, and {} answered", orders.len(), outcomes.len()));
        }
        for (order, outcome) in orders.iter().zip(outcomes) {
            self.resolve(order, None, outcome).await;
        }
    }

    /// Sends a job again until the server has said what became of it, and once more by chance.
    async fn resolve<J: Job + Clone>(
        &mut self,
        order: &Order<J>,
        mut id: Option<JobId>,
        mut sent: Result<Ticket<J>, EnqueueError>,
    ) {
        loop {
            match sent {
                Ok(ticket) => {
                    self.admitted(order, id, ticket).await;
                    return;
                }
                Err(EnqueueError::Call { id: unknown, source }) if source.is_transient() => {
                    if id.is_some_and(|id| id != unknown) {
                        self.book.violation(format!("{id:?} was sent again, and {unknown} came back"));
                    }
                    Book::count(&self.book.unknown);
                    id = Some(unknown);
                    sleep(Duration::from_millis(50)).await;
                    sent = order.send(&self.client, id).await;
                }
                Err(error) => {
                    self.book.violation(format!("{} wasn't enqueued, for good: {error}", order.entry.what));
                    return;
                }
            }
        }
    }

    async fn admitted<J: Job + Clone>(&mut self, order: &Order<J>, sent_as: Option<JobId>, ticket: Ticket<J>) {
        match (ticket.outcome(), &order.entry.key) {
            (Admission::Duplicate(holder), Some(key)) if Some(holder) != sent_as => {
                self.book.duplicate(key.clone(), holder);
                return;
            }
            (Admission::Duplicate(holder), None) if Some(holder) != sent_as => {
                self.book.violation(format!("a new job without a key is called a duplicate of {holder}"));
                return;
            }
            // An earlier try was carried out.
            (Admission::Duplicate(_), _) | (Admission::Enqueued, _) => self.book.accept(ticket.id(), &order.entry),
        }
        if self.chance.random_bool(0.05) {
            self.repeat(order, ticket.id()).await;
        }
    }

    /// Sends a job again that was accepted.
    async fn repeat<J: Job + Clone>(&self, order: &Order<J>, id: JobId) {
        Book::count(&self.book.repeats);
        match order.send(&self.client, Some(id)).await {
            Ok(ticket) if ticket.outcome() == Admission::Duplicate(id) => {}
            Ok(ticket) => self.book.violation(format!("{id} was sent twice, and is {ticket:?} the second time")),
            Err(EnqueueError::Call { source, .. }) if source.is_transient() => {}
            Err(error) => self.book.violation(format!("{id} was sent twice, and refused: {error}")),
        }
    }
}
