//! The plan of the jobs: what each producer enqueues, how and when. A function of the seed and of the producer's number
//! alone, whatever becomes of the jobs.

use std::time::Duration;

use emq::{Client, Draft, EnqueueError, Job, JobId, Ticket};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    book::Entry,
    jobs::{End, HangJob, LANES, Plan, WorkJob, load},
};

/// How many deduplication keys there are.
const KEYS: u32 = 30;

/// A job that is to be enqueued.
#[derive(Clone, Debug)]
pub(crate) struct Order<J> {
    job: J,
    delay: Option<Duration>,
    priority: i32,
    lane: Option<&'static str>,
    expires_in: Option<Duration>,
    max_attempts: Option<u32>,
    pub(crate) entry: Entry,
    /// Whether it is sent once more though it was accepted.
    pub(crate) repeated: bool,
    /// After which time it is to be removed, if it still waits then.
    pub(crate) withdrawn_after: Option<Duration>,
}

/// What a producer does at one time.
#[derive(Clone, Debug)]
pub(crate) enum Errand {
    Hang(Order<HangJob>),
    Work(Order<WorkJob>),
    /// All in one call.
    Many(Vec<Order<WorkJob>>),
}

impl<J: Job + Clone> Order<J> {
    pub(crate) fn draft(&self, id: Option<JobId>) -> Draft<J> {
        let mut draft = Draft::of(self.job.clone()).priority(self.priority);
        if let Some(id) = id {
            draft = draft.id(id);
        }
        if let Some(delay) = self.delay {
            draft = draft.delay(delay);
        }
        if let Some(lane) = self.lane {
            draft = draft.group(lane);
        }
        if let Some(time) = self.expires_in {
            draft = draft.expires_in(time);
        }
        if let Some(key) = &self.entry.key {
            draft = draft.unique(key);
        }
        if let Some(max_attempts) = self.max_attempts {
            draft = draft.max_attempts(max_attempts);
        }
        draft
    }

    pub(crate) async fn send(&self, client: &Client, id: Option<JobId>) -> Result<Ticket<J>, EnqueueError> {
        let mut enqueue = client.enqueue(self.job.clone()).priority(self.priority);
        if let Some(id) = id {
            enqueue = enqueue.id(id);
        }
        if let Some(delay) = self.delay {
            enqueue = enqueue.delay(delay);
        }
        if let Some(lane) = self.lane {
            enqueue = enqueue.group(lane);
        }
        if let Some(time) = self.expires_in {
            enqueue = enqueue.expires_in(time);
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

/// What one producer does, without end.
pub(crate) struct Orders {
    chance: StdRng,
}

impl Orders {
    pub(crate) fn new(seed: u64, producer: u64) -> Self {
        Self { chance: StdRng::seed_from_u64(seed.wrapping_add(producer + 1)) }
    }

    /// The next errand, and the pause before it.
    pub(crate) fn next(&mut self) -> (Duration, Errand) {
        let pause = Duration::from_millis(self.chance.random_range(20..120));
        let errand = match self.chance.random_range(0..20) {
            0 => Errand::Hang(self.hang()),
            1..=13 => Errand::Work(self.work()),
            _ => Errand::Many((0..self.chance.random_range(2..14)).map(|_| self.work()).collect()),
        };
        (pause, errand)
    }

    fn hang(&mut self) -> Order<HangJob> {
        let times = self.chance.random_range(1..3);
        let entry = Entry { what: format!("hang {times} times"), end: End::Done, key: None };
        Order {
            job: HangJob { times },
            delay: None,
            priority: 0,
            lane: None,
            expires_in: None,
            max_attempts: None,
            entry,
            repeated: self.chance.random_bool(0.05),
            withdrawn_after: None,
        }
    }

    fn work(&mut self) -> Order<WorkJob> {
        let plan = self.plan();
        let chance = &mut self.chance;
        let (what, mut end) = (plan.to_string(), plan.end());
        let is_done = end == End::Done;
        let key = (is_done && chance.random_bool(0.2)).then(|| format!("key-{}", chance.random_range(0..KEYS)));
        let delay = chance.random_bool(0.1).then(|| Duration::from_millis(chance.random_range(50..3_000)));
        let priority = if chance.random_bool(0.1) { chance.random_range(-3..4) } else { 0 };
        let max_attempts = match end {
            End::Dead { failures } if failures > 1 => Some(failures),
            _ => None,
        };
        let withdrawn_after =
            (is_done && chance.random_bool(0.05)).then(|| Duration::from_millis(chance.random_range(0..1_500)));
        let lane = chance.random_bool(0.3).then(|| LANES[chance.random_range(0..LANES.len())].0);
        let may_expire = is_done && withdrawn_after.is_none() && chance.random_bool(0.05);
        let expires_in = may_expire.then(|| Duration::from_millis(chance.random_range(1..2_000)));
        if may_expire {
            end = End::DoneOrExpired;
        }
        let entry = Entry { what, end, key };
        let repeated = chance.random_bool(0.05);
        let job = WorkJob { plan };
        Order { job, delay, priority, lane, expires_in, max_attempts, entry, repeated, withdrawn_after }
    }

    fn plan(&mut self) -> Plan {
        let chance = &mut self.chance;
        match chance.random_range(0..1000) {
            0..20 => Plan::Succeed { ms: chance.random_range(1_800..3_500) },
            20..26 => Plan::Block { ms: chance.random_range(1_800..3_000) },
            26..120 => Plan::Flaky { failures: chance.random_range(1..4) },
            120..180 => Plan::Panic { failures: chance.random_range(1..3) },
            180..240 => Plan::Snooze { times: chance.random_range(1..4) },
            240..290 => Plan::FailLate,
            290..305 => Plan::Fatal,
            305..320 => Plan::Hopeless,
            320..330 => Plan::Doomed,
            330..350 => Plan::Discard,
            350..360 => {
                let length = chance.random_range(5_000..60_000);
                Plan::Carry { length, load: load(length) }
            }
            _ => Plan::Succeed { ms: chance.random_range(0..60) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, producer: u64, number: usize) -> String {
        let mut orders = Orders::new(seed, producer);
        let first: Vec<_> = std::iter::repeat_with(|| orders.next()).take(number).collect();
        format!("{first:?}")
    }

    #[test]
    fn the_same_seed_gives_each_producer_the_same_orders_and_another_seed_gives_others() {
        assert_eq!(first(7, 0, 300), first(7, 0, 300));
        assert_ne!(first(7, 0, 10), first(7, 1, 10));
        assert_ne!(first(7, 0, 10), first(9, 0, 10));
    }

    #[test]
    fn every_way_in_which_a_job_can_end_is_ordered_soon() {
        let orders = first(7, 0, 300);
        for word in [
            "Done",
            "Discarded",
            "DoneOrExpired",
            "Dead { failures: 1 }",
            "Dead { failures: 3 }",
            "hang",
            "Carry",
            "Block",
        ] {
            assert!(orders.contains(word), "{word}");
        }
    }
}
