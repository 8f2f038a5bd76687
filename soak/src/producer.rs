//! The producers: tasks of this process that enqueue all kinds of jobs, and don't let go of one before the server has said
//! what became of it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{Admission, BoxError, Client, EnqueueError, Job, JobId, Ticket};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    book::Book,
    jobs::End,
    keys::Mode,
    ledger::now,
    meetings::Meetings,
    operator::{Operator, is_passing},
    orders::{Errand, Order, Orders, Taking},
    worker,
};

/// One producer.
pub(crate) struct Producer {
    client: Client,
    book: Arc<Book>,
    orders: Orders,
    /// Who takes away what it has enqueued. There is none for a producer behind a proxy: an enqueue that a line held back
    /// would come after the removal, and an id that was never claimed isn't remembered.
    operator: Option<Operator>,
    /// What is to be taken away, when and how.
    withdrawals: Vec<(Instant, JobId, Taking)>,
    cancellations: JoinSet<()>,
    meetings: Meetings,
}

impl Producer {
    pub(crate) async fn connect(
        url: &str,
        book: Arc<Book>,
        orders: Orders,
        operator: Option<Operator>,
    ) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::from_millis(400)).connect().await?;
        let (withdrawals, cancellations, meetings) = (Vec::new(), JoinSet::new(), Meetings::default());
        Ok(Self { client, book, orders, operator, withdrawals, cancellations, meetings })
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
            while self.cancellations.try_join_next().is_some() {}
        }
        self.cancellations.join_all().await;
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
        let sent_at = now();
        let sent = order.send(&self.client, None).await.map(Sent::from);
        self.resolve(order, sent_at, sent).await;
    }

    async fn many<J: Job + Clone>(&mut self, orders: &[Order<J>]) {
        let sent_at = now();
        let sent = self.client.enqueue_many(orders.iter().map(|order| order.draft(None))).await;
        let outcomes = match sent {
            Ok(tickets) => tickets.into_iter().map(|ticket| Ok(Sent::from(ticket))).collect(),
            Err(error) => error.outcomes.into_iter().map(|outcome| outcome.map(Sent::from)).collect::<Vec<_>>(),
        };
        if outcomes.len() != orders.len() {
            self.book.violation(format!("{} jobs were sent, and {} answered", orders.len(), outcomes.len()));
        }
        for (order, outcome) in orders.iter().zip(outcomes) {
            self.resolve(order, sent_at, outcome).await;
        }
    }

    /// Sends a job again until the server has said what became of it.
    async fn resolve<J: Job + Clone>(&mut self, order: &Order<J>, sent_at: i64, mut sent: Result<Sent, EnqueueError>) {
        let mut id: Option<JobId> = None;
        loop {
            match sent {
                Ok(sent) => {
                    self.answered(order, sent_at, id, sent).await;
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

    /// `sent_as` is under which id the job was sent before, if its first answer was lost.
    async fn answered<J: Job + Clone>(&mut self, order: &Order<J>, sent_at: i64, sent_as: Option<JobId>, sent: Sent) {
        let (entry, id) = (&order.entry, sent.id);
        match (sent.outcome, &entry.key) {
            (Admission::Duplicate(holder), Some(key)) if Some(holder) != sent_as => {
                Book::count(&self.book.duplicates);
                self.book.holder(key.clone(), holder);
                if let Some(why) = self.meetings.kept_out(key, sent_at, holder) {
                    self.book.violation_of(holder, why);
                }
            }
            (Admission::Duplicate(holder), None) if Some(holder) != sent_as => {
                self.book.violation(format!("a new job without a key is called a duplicate of {holder}"));
            }
            (Admission::Replaced(holder), Some(key)) if matches!(key.mode, Mode::Replace | Mode::Once) => {
                Book::count(&self.book.replaced);
                self.book.holder(key.clone(), holder);
                self.book.replace(holder, entry.mark);
            }
            (Admission::Parked(holder), Some(key)) if matches!(key.mode, Mode::Replace | Mode::Once) => {
                Book::count(&self.book.parked);
                self.book.holder(key.clone(), holder);
                self.admitted(order, id).await;
            }
            // New, or an earlier try was carried out.
            (Admission::Enqueued | Admission::Duplicate(_), _) => self.admitted(order, id).await,
            (outcome, key) => self.book.violation_of(id, format!("{id} with the key {key:?} is {outcome:?}")),
        }
    }

    async fn admitted<J: Job + Clone>(&mut self, order: &Order<J>, id: JobId) {
        let entry = &order.entry;
        self.book.accept(id, entry);
        if let (Some(key), Ok(queue)) = (&entry.key, self.client.queue(entry.queue())) {
            let is_kept = order.taken_after.is_none() && entry.end != End::Any;
            if let Some(why) = self.meetings.let_in(key, id, is_kept, &queue).await {
                self.book.violation_of(id, why);
            }
        }
        if order.repeated {
            self.repeat(order, id).await;
        }
        if let Some((time, taking)) = order.taken_after {
            self.withdrawals.push((Instant::now() + time, id, taking));
        }
    }

    /// Sends a job again that was accepted.
    async fn repeat<J: Job + Clone>(&self, order: &Order<J>, id: JobId) {
        Book::count(&self.book.repeats);
        match order.send(&self.client, Some(id)).await {
            Ok(ticket) if ticket.admission() == Admission::Duplicate(id) => {}
            Ok(ticket) if ticket.id() == id && matches!(ticket.admission(), Admission::Parked(_)) => {}
            Ok(ticket) => self.book.violation(format!("{id} was sent twice, and is {ticket:?} the second time")),
            Err(EnqueueError::Call { source, .. }) if is_passing(&source) => {}
            Err(error) => self.book.violation(format!("{id} was sent twice, and refused: {error}")),
        }
    }

    /// Has taken away what is to be taken away by now.
    async fn withdraw(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self.withdrawals.extract_if(.., |(at, ..)| *at <= now).collect();
        let Some(operator) = &self.operator else { return };
        for (_, id, taking) in due {
            match taking {
                Taking::Remove => operator.withdraw(id).await,
                // Until it is known how it ended.
                Taking::Cancel => _ = self.cancellations.spawn(operator.clone().cancel(id)),
            }
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
        Self { id: ticket.id(), outcome: ticket.admission() }
    }
}
