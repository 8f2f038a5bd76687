//! Everything that is known at the end: what the book, the ledger and the server say.

use std::collections::{BTreeMap, HashMap};

use emq::{BoxError, Client, Counts, JobId, Place, Stored};

use crate::{
    book::{Book, Entry, Paused, Taken},
    event::{Event, Slot, What},
    jobs::{End, QUEUE, SCRAP},
    keys::Key,
    ledger::Ledger,
};

/// A dead letter as the server has it.
#[derive(Clone, Debug)]
pub(crate) struct Dead {
    pub(crate) stored: Stored,
    pub(crate) log: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Facts {
    /// What the server has accepted, and the jobs of the slots that have run.
    pub(crate) jobs: HashMap<JobId, Entry>,
    pub(crate) taken: HashMap<JobId, Taken>,
    /// No newer token than that may have been given out.
    pub(crate) last_tokens: HashMap<JobId, u64>,
    /// Who was named as the holder of a key.
    pub(crate) holders: Vec<(Key, JobId)>,
    pub(crate) pauses: Vec<Paused>,
    /// What the runs of each job have noted, in its order.
    pub(crate) events: HashMap<JobId, Vec<Event>>,
    /// How often each job has had its effect.
    pub(crate) effects: HashMap<JobId, u64>,
    pub(crate) slots: Vec<Slot>,
    /// The last slots that recurring jobs have had.
    pub(crate) last_slots: BTreeMap<&'static str, Option<i64>>,
    /// The dead letters of both queues.
    pub(crate) dead: HashMap<JobId, Dead>,
    pub(crate) counts: Counts,
    pub(crate) scrap: Counts,
}

impl Facts {
    /// Gathers them, once all workers have ended.
    pub(crate) async fn gather(
        book: &Book,
        ledger: &Ledger,
        client: &Client,
        last_slots: BTreeMap<&'static str, Option<i64>>,
    ) -> Result<Self, BoxError> {
        let (jobs, taken) = (book.jobs().clone(), book.taken().clone());
        let mut facts = Self {
            jobs,
            taken,
            last_tokens: book.last_tokens(),
            holders: book.holders(),
            pauses: book.pauses(),
            events: HashMap::new(),
            effects: HashMap::new(),
            slots: ledger.slots().await?,
            last_slots,
            dead: HashMap::new(),
            counts: client.queue(QUEUE)?.counts().await?,
            scrap: client.queue(SCRAP)?.counts().await?,
        };
        for event in ledger.events().await? {
            facts.events.entry(event.job.parse()?).or_default().push(event);
        }
        for job in ledger.effects().await? {
            *facts.effects.entry(job.parse()?).or_default() += 1;
        }
        for slot in &facts.slots {
            let entry = Entry::new(format!("the slot {} of {}", slot.at, slot.name), End::Done);
            facts.jobs.insert(slot.job.parse()?, entry);
        }
        for queue in [QUEUE, SCRAP] {
            dead(client, queue, &mut facts.dead).await?;
        }
        Ok(facts)
    }

    pub(crate) fn events(&self, id: JobId) -> &[Event] {
        self.events.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Of what was noted of a job, all of this kind.
    pub(crate) fn all(&self, id: JobId, what: What) -> impl DoubleEndedIterator<Item = &Event> {
        self.events(id).iter().filter(move |event| event.what == what)
    }

    /// The newest token under which anything was noted of a job.
    pub(crate) fn newest_token(&self, id: JobId) -> u64 {
        self.events(id).iter().map(|event| event.fence).max().unwrap_or(0)
    }

    /// The jobs of a queue.
    pub(crate) fn of_queue(&self, queue: &str) -> impl Iterator<Item = (JobId, &Entry)> {
        self.jobs.iter().filter(move |(_, entry)| entry.queue() == queue).map(|(id, entry)| (*id, entry))
    }

    /// How many jobs were taken away so.
    pub(crate) fn taken_so(&self, how: Taken) -> u64 {
        self.taken.values().filter(|taken| **taken == how).count() as u64
    }

    /// How many dead letters of a queue have expired.
    pub(crate) fn expired(&self, queue: &str) -> u64 {
        self.of_queue(queue).filter(|(id, _)| self.dead.get(id).is_some_and(Dead::has_expired)).count() as u64
    }
}

impl Dead {
    pub(crate) fn has_expired(&self) -> bool {
        self.stored.last_error.as_deref() == Some("expired")
    }
}

/// Adds all dead letters of a queue.
async fn dead(client: &Client, queue: &str, dead: &mut HashMap<JobId, Dead>) -> Result<(), BoxError> {
    let queue = client.queue(queue)?;
    let mut offset = 0;
    loop {
        let page = queue.list(Place::Dead, offset, 1_000).await?;
        if page.is_empty() {
            return Ok(());
        }
        offset += page.len() as u64;
        for listed in page {
            let stored = queue.get(listed.id).await?;
            let stored = stored.ok_or_else(|| format!("the dead letter {} has no row", listed.id))?;
            dead.insert(listed.id, Dead { stored, log: queue.logs(listed.id).await? });
        }
    }
}
