//! The producers: tasks of this process that enqueue all kinds of jobs, and don't let go of one before the server has said
//! what became of it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{Admission, BoxError, Client, EnqueueError, Job, JobId, Ticket};
use tokio::time::{Instant, sleep};

use crate::{
    book::Book,
    operator::{Operator, is_passing},
    orders::{Errand, Order, Orders},
    worker,
};

/// One producer.
pub(crate) struct Producer {
    client: Client,
    book: Arc<Book>,
    orders: Orders,
    /// Who removes what it has enqueued. There is none for a producer behind a proxy: an enqueue that a line held back
    /// would come after the removal, and an id that was never claimed isn't remembered.
    operator: Option<Operator>,
    withdrawals: Vec<(Instant, JobId)>,
}

impl Producer {
    pub(crate) async fn connect(
        url: &str,
        book: Arc<Book>,
        orders: Orders,
        operator: Option<Operator>,
    ) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::from_millis(400)).connect().await?;
        Ok(Self { client, book, orders, operator, withdrawals: Vec::new() })
    }

    /// Enqueues until the book is over, and what is left unknown until it isn't.
    pub(crate) async fn run(mut self) {
        while !self.book.over.load(Ordering::Relaxed) {
            if self.book.full.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(50)).await;
            } else {
                let (pause, errand) = self.orders.next();
                sleep(pause).await;
                self.go(errand).await;
            }
            self.withdraw().await;
        }
        self.client.close().await;
    }

    async fn go(&mut self, errand: Errand) {
        match errand {
            Errand::Hang(order) => self.one(&order).await,
            Errand::Work(order) => self.one(&order).await,
            Errand::Many(orders) => self.many(&orders).await,
        }
    }

    async fn one<J: Job + Clone>(&mut self, order: &Order<J>) {
        let sent = order.send(&self.client, None).await.map(Sent::from);
        self.resolve(order, sent).await;
    }

    async fn many<J: Job + Clone>(&mut self, orders: &[Order<J>]) {
        let sent = self.client.enqueue_many(orders.iter().map(|order| order.draft(None))).await;
        let outcomes = match sent {
            Ok(tickets) => tickets.into_iter().map(|ticket| Ok(Sent::from(ticket))).collect(),
            Err(error) => error.outcomes.into_iter().map(|outcome| outcome.map(Sent::from)).collect::<Vec<_>>(),
        };
        if outcomes.len() != orders.len() {
            self.book.violation(format!("{} jobs were sent, and {} answered", orders.len(), outcomes.len()));
        }
        for (order, outcome) in orders.iter().zip(outcomes) {
            self.resolve(order, outcome).await;
        }
    }

    /// Sends a job again until the server has said what became of it.
    async fn resolve<J: Job + Clone>(&mut self, order: &Order<J>, mut sent: Result<Sent, EnqueueError>) {
        let mut id: Option<JobId> = None;
        loop {
            match sent {
                Ok(sent) => {
                    self.admitted(order, id, sent).await;
                    return;
                }
                Err(EnqueueError::Call { id: sent_as, source }) if is_passing(&source) => {
                    if id.is_some_and(|id| id != sent_as) {
                        self.book.violation(format!("{id:?} was sent again, and {sent_as} came back"));
                    }
                    Book::count(&self.book.unknown);
                    id = Some(sent_as);
                    sleep(Duration::from_millis(50)).await;
                    sent = order.send(&self.client, id).await.map(Sent::from);
                }
                Err(error) => {
                    self.book.violation(format!("{} wasn't enqueued, for good: {error}", order.entry.what));
                    return;
                }
            }
        }
    }

    async fn admitted<J: Job + Clone>(&mut self, order: &Order<J>, sent_as: Option<JobId>, sent: Sent) {
        match (sent.outcome, &order.entry.key) {
            (Admission::Duplicate(holder), Some(key)) if Some(holder) != sent_as => {
                self.book.duplicate(key.clone(), holder);
                return;
            }
            (Admission::Duplicate(holder), None) if Some(holder) != sent_as => {
                self.book.violation(format!("a new job without a key is called a duplicate of {holder}"));
                return;
            }
            // New, or an earlier try was carried out.
            _ => self.book.accept(sent.id, &order.entry),
        }
        if order.repeated {
            self.repeat(order, sent.id).await;
        }
        if let Some(time) = order.withdrawn_after {
            self.withdrawals.push((Instant::now() + time, sent.id));
        }
    }

    /// Sends a job again that was accepted.
    async fn repeat<J: Job + Clone>(&self, order: &Order<J>, id: JobId) {
        Book::count(&self.book.repeats);
        match order.send(&self.client, Some(id)).await {
            Ok(ticket) if ticket.outcome() == Admission::Duplicate(id) => {}
            Ok(ticket) => self.book.violation(format!("{id} was sent twice, and is {ticket:?} the second time")),
            Err(EnqueueError::Call { source, .. }) if is_passing(&source) => {}
            Err(error) => self.book.violation(format!("{id} was sent twice, and refused: {error}")),
        }
    }

    /// Has removed what is to be removed by now.
    async fn withdraw(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self.withdrawals.extract_if(.., |(at, _)| *at <= now).collect();
        let Some(operator) = &self.operator else { return };
        for (_, id) in due {
            operator.withdraw(id).await;
        }
    }
}

/// What a ticket says, whatever the type of its job.
struct Sent {
    id: JobId,
    outcome: Admission,
}

impl<J> From<Ticket<J>> for Sent {
    fn from(ticket: Ticket<J>) -> Self {
        Self { id: ticket.id(), outcome: ticket.outcome() }
    }
}
