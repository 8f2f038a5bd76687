//! Which leases are in hand, and when each has to be renewed. Nothing here does I/O.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{Delivery, LeaseState};
use crate::{
    clock::later,
    job::{JobId, QueueName},
    store::{Extended, Lease},
};

/// The shortest time between two renewals of one lease.
const SHORTEST_BEAT: Duration = Duration::from_millis(10);

/// How long nobody looks at the leases at most: a lease that comes meanwhile, and is due later, needn't wake the keeper.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// The longest pause after a renewal that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The leases in hand, shared between those who hold them and the one who renews them.
#[derive(Default)]
pub(super) struct Held {
    leases: Mutex<Leases>,
    /// Something has to be done earlier than was planned.
    pub(super) hurry: Notify,
}

#[derive(Default)]
struct Leases {
    by_key: HashMap<u64, Entry>,
    /// Runs that block their threads, and were written off.
    stuck: HashSet<u64>,
    last_key: u64,
    /// When they are looked at next.
    look: Option<Instant>,
}

/// One lease in hand.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) delivery: Delivery,
    pub(super) term: Duration,
    /// When it is to be renewed next.
    due: Instant,
}

impl Entry {
    fn queue(&self) -> &QueueName {
        self.delivery.queue()
    }

    fn state(&self) -> &LeaseState {
        self.delivery.lease_state()
    }
}

/// What is to be sent now, and when to look again.
#[derive(Debug)]
pub(super) struct Beat {
    pub(super) due: HashMap<QueueName, Vec<(u64, Entry)>>,
    pub(super) next: Instant,
    /// Runs that are past their timeout and can't be dropped: their jobs are to be failed.
    pub(super) stuck: Vec<Entry>,
}

/// A lease that is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct Kept {
    key: u64,
    held: Arc<Held>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut leases = self.held.leases();
        let entry = leases.by_key.remove(&self.key);
        if !leases.stuck.is_empty() {
            leases.stuck.remove(&self.key);
        }
        // What is dropped with the last of a delivery isn't dropped under the lock.
        drop(leases);
        drop(entry);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("in_hand", &self.leases().by_key.len()).finish_non_exhaustive()
    }
}

impl Held {
    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a lease until the answer is dropped.
    pub(super) fn keep(self: &Arc<Self>, delivery: Delivery) -> Kept {
        let term = delivery.context().lease();
        let now = Instant::now();
        // A job whose type wants another lease than the one it was claimed under gets it at once.
        let differs = delivery.lease_state().until().saturating_duration_since(now).abs_diff(term) > beat(term);
        let due = if differs { now } else { later(now, beat(term)) };
        let mut leases = self.leases();
        leases.last_key += 1;
        let key = leases.last_key;
        let hurry = leases.look.is_none_or(|look| due < look);
        leases.by_key.insert(key, Entry { delivery, term, due });
        drop(leases);
        if hurry {
            self.hurry.notify_one();
        }
        Kept { key, held: Arc::clone(self) }
    }

    /// Gives up what ran out, and says what is to be renewed now: one call per queue.
    pub(super) fn beat(&self, now: Instant) -> Beat {
        let mut leases = self.leases();
        let lost: Vec<_> = leases.by_key.extract_if(|_, entry| entry.state().until() <= now).collect();
        let is_stuck = |entry: &Entry| entry.state().overdue().is_some_and(|end| end <= now);
        let (keys, stuck): (Vec<_>, Vec<_>) = leases.by_key.extract_if(|_, entry| is_stuck(entry)).unzip();
        leases.stuck.extend(keys);
        let mut due: HashMap<QueueName, Vec<(u64, Entry)>> = HashMap::new();
        if leases.by_key.values().any(|entry| entry.due <= now) {
            for (key, entry) in &mut leases.by_key {
                // What would be due before half a beat is over goes along: one call per beat and queue.
                if entry.due <= later(now, beat(entry.term) / 2) {
                    entry.due = later(now, beat(entry.term));
                    entry.state().asked(later(now, entry.term));
                    due.entry(entry.queue().clone()).or_default().push((*key, entry.clone()));
                }
            }
        }
        let next = leases.by_key.values().map(|entry| {
            let look = entry.due.min(entry.state().until());
            entry.state().overdue().map_or(look, |end| look.min(end))
        });
        let next = next.fold(later(now, LONGEST_SLEEP), Instant::min);
        leases.look = Some(next);
        drop(leases);
        // Not under the lock: who is woken may drop what it kept.
        lost.iter().for_each(|(_, entry)| entry.state().lose());
        Beat { due, next, stuck }
    }

    /// Takes the server's answers to a call that was sent at `sent`.
    pub(super) fn answered(&self, sent: Instant, entries: &[(u64, Entry)], answers: &[Extended]) {
        for ((key, entry), answer) in entries.iter().zip(answers) {
            match answer {
                Extended::Renewed => entry.state().renewed(later(sent, entry.term)),
                Extended::Lost => {
                    self.leases().by_key.remove(key);
                    entry.state().lose();
                }
                Extended::Cancelled => {
                    self.leases().by_key.remove(key);
                    entry.state().cancelled().close();
                }
            }
        }
    }

    /// A call wasn't answered: the leases stand as they were, and are asked for again soon.
    pub(super) fn failed(&self, entries: &[(u64, Entry)]) {
        let now = Instant::now();
        let mut leases = self.leases();
        for (key, _) in entries {
            if let Some(entry) = leases.by_key.get_mut(key) {
                let pause = (beat(entry.term) / 4).clamp(SHORTEST_BEAT, LONGEST_PAUSE);
                entry.due = entry.due.min(later(now, pause));
            }
        }
        drop(leases);
        self.hurry.notify_one();
    }

    /// Has a job's lease renewed now, if it is in hand here: somebody may have cancelled the job, and the answer says so.
    /// `None` for all of the queue.
    pub(super) fn ask_now(&self, queue: &QueueName, id: Option<JobId>) {
        let now = Instant::now();
        let mut asked = false;
        for entry in self.leases().by_key.values_mut() {
            if entry.queue() == queue && id.is_none_or(|id| id == entry.state().lease().id()) {
                entry.due = now;
                asked = true;
            }
        }
        if asked {
            self.hurry.notify_one();
        }
    }

    /// How many runs block their threads, although their jobs were written off.
    pub(super) fn stuck(&self) -> usize {
        self.leases().stuck.len()
    }

    /// The jobs in hand.
    pub(super) fn in_hand(&self) -> Vec<(QueueName, Lease)> {
        self.leases().by_key.values().map(|entry| (entry.queue().clone(), entry.state().lease())).collect()
    }
}

/// Every third of a lease.
fn beat(term: Duration) -> Duration {
    (term / 3).max(SHORTEST_BEAT)
}
