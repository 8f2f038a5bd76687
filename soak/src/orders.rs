//! The plan of the jobs: what each producer enqueues, how and when. A function of the seed and of the producer's number
//! alone, whatever becomes of the jobs.

use std::time::Duration;

use emq::{Client, Draft, EnqueueError, Job, JobId, Ticket};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    book::Entry,
    jobs::{End, HangJob, Plan, WorkJob, load},
    keys::{Key, Mode},
    lanes::{LANES, LIMITED},
};

/// How many deduplication keys there are of each mode, if all producers use them, and if each has his own.
const KEYS: u32 = 8;
const OWN_KEYS: u32 = 2;

/// A job that is to be enqueued.
#[derive(Clone, Debug)]
pub(crate) struct Order<J> {
    job: J,
    delay: Option<Duration>,
    priority: i32,
    expires_in: Option<Duration>,
    max_attempts: Option<u32>,
    pub(crate) entry: Entry,
    /// Whether it is sent once more though it was accepted.
    pub(crate) repeated: bool,
    /// After which time it is to be taken away, and how.
    pub(crate) taken_after: Option<(Duration, Taking)>,
}

/// How a job is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// If it still waits then.
    Remove,
    /// If it waits or runs.
    Cancel,
}

/// What a producer does at one time.
#[derive(Clone, Debug)]
pub(crate) enum Errand {
    Hang(Order<HangJob>),
    Work(Order<WorkJob>),
    /// All in one call.
    Many(Vec<Order<WorkJob>>),
}

/// Gives a draft or an enqueue everything that an order says.
macro_rules! by_order {
    ($order:expr, $id:expr, $builder:expr) => {{
        let (order, mut builder) = ($order, $builder);
        builder = builder.priority(order.priority).queue(order.entry.queue());
        if let Some(id) = $id {
            builder = builder.id(id);
        }
        if let Some(delay) = order.delay {
            builder = builder.delay(delay);
        }
        if let Some(lane) = order.entry.lane {
            builder = builder.group(lane);
        }
        if let Some(time) = order.expires_in {
            builder = builder.expires_in(time);
        }
        if let Some(key) = &order.entry.key {
            builder = builder.unique(key.unique());
        }
        if let Some(max_attempts) = order.max_attempts {
            builder = builder.max_attempts(max_attempts);
        }
        builder
    }};
}

impl<J: Job + Clone> Order<J> {
    pub(crate) fn draft(&self, id: Option<JobId>) -> Draft<J> {
        by_order!(self, id, Draft::of(self.job.clone()))
    }

    pub(crate) async fn send(&self, client: &Client, id: Option<JobId>) -> Result<Ticket<J>, EnqueueError> {
        by_order!(self, id, client.enqueue(self.job.clone())).await
    }
}

/// What one producer does, without end.
pub(crate) struct Orders {
    chance: StdRng,
    producer: u64,
    marks: u64,
}

impl Orders {
    pub(crate) fn new(seed: u64, producer: u64) -> Self {
        Self { chance: StdRng::seed_from_u64(seed.wrapping_add(producer + 1)), producer, marks: 0 }
    }

    /// The next errand, and the pause before it.
    pub(crate) fn next(&mut self) -> (Duration, Errand) {
        let pause = Duration::from_millis(self.chance.random_range(20..120));
        let errand = match self.chance.random_range(0..20) {
            0 => Errand::Hang(self.hang()),
            1 => Errand::Many((0..self.chance.random_range(1..8)).map(|_| self.scrap()).collect()),
            2 | 3 => Errand::Work(self.merging()),
            4..=13 => Errand::Work(self.work()),
            _ => Errand::Many((0..self.chance.random_range(2..14)).map(|_| self.work()).collect()),
        };
        (pause, errand)
    }

    fn hang(&mut self) -> Order<HangJob> {
        let times = self.chance.random_range(1..3);
        let entry = Entry::new(format!("hang {times} times"), End::Done);
        let repeated = self.chance.random_bool(0.05);
        Order { repeated, ..Order::of(HangJob { times }, entry) }
    }

    fn work(&mut self) -> Order<WorkJob> {
        let taken_after = self.taken_after();
        let plan = if matches!(taken_after, Some((_, Taking::Cancel))) { self.long() } else { self.plan() };
        let mut entry = Entry::new(plan.to_string(), plan.end());
        let is_done = entry.end == End::Done;
        entry.lane = self.lane(&plan);
        let chance = &mut self.chance;
        if is_done && chance.random_bool(0.25) {
            entry.key = Some(self.key());
        }
        let chance = &mut self.chance;
        let delay = chance.random_bool(0.1).then(|| Duration::from_millis(chance.random_range(50..3_000)));
        entry.not_before = delay.unwrap_or_default();
        let priority = if chance.random_bool(0.1) { chance.random_range(-3..4) } else { 0 };
        let max_attempts = match entry.end {
            End::Dead { failures } if failures > 1 => Some(failures),
            _ => None,
        };
        let taken_after = taken_after.filter(|_| is_done);
        let may_expire = is_done && taken_after.is_none() && chance.random_bool(0.05);
        let expires_in = may_expire.then(|| Duration::from_millis(chance.random_range(1..2_000)));
        if may_expire {
            entry.end = End::DoneOrExpired;
        }
        let repeated = chance.random_bool(0.05);
        let job = WorkJob { plan };
        Order { delay, priority, expires_in, max_attempts, repeated, taken_after, ..Order::of(job, entry) }
    }

    /// A job that may do its work in the place of another, or have another do so, or wait behind one.
    fn merging(&mut self) -> Order<WorkJob> {
        self.marks += 1;
        let (mark, chance) = (self.marks, &mut self.chance);
        let plan = Plan::Marked { mark, failures: chance.random_range(0..3), ms: chance.random_range(0..400) };
        let delay = chance.random_bool(0.4).then(|| Duration::from_millis(chance.random_range(50..500)));
        let mode = if chance.random_bool(0.5) { Mode::Replace } else { Mode::Once };
        let key = Key::new(mode, chance.random_range(0..OWN_KEYS), self.producer);
        let entry = Entry { key: Some(key), mark: Some(mark), ..Entry::new(plan.to_string(), End::Done) };
        Order { delay, ..Order::of(WorkJob { plan }, entry) }
    }

    /// A job that may be drained or purged.
    fn scrap(&mut self) -> Order<WorkJob> {
        let mut order = self.work();
        order.entry.end = End::Any;
        order.entry.key = order.entry.key.take().map(|key| Key { name: format!("scrap-{}", key.name), ..key });
        order.taken_after = None;
        order
    }

    fn taken_after(&mut self) -> Option<(Duration, Taking)> {
        let chance = &mut self.chance;
        chance.random_bool(0.06).then(|| {
            let taking = if chance.random_bool(0.6) { Taking::Cancel } else { Taking::Remove };
            (Duration::from_millis(chance.random_range(0..1_500)), taking)
        })
    }

    /// Something that may well run for so long that it is cancelled under way.
    fn long(&mut self) -> Plan {
        if self.chance.random_bool(0.6) {
            Plan::Succeed { ms: self.chance.random_range(500..2_500) }
        } else {
            self.plan()
        }
    }

    fn key(&mut self) -> Key {
        let chance = &mut self.chance;
        let (mode, count) = match chance.random_range(0..4) {
            0 => (Mode::Start, OWN_KEYS),
            1 => (Mode::Window, OWN_KEYS),
            2 => (Mode::Rest, KEYS),
            _ => (Mode::End, KEYS),
        };
        Key::new(mode, chance.random_range(0..count), self.producer)
    }

    fn lane(&mut self, plan: &Plan) -> Option<&'static str> {
        let chance = &mut self.chance;
        if matches!(plan, Plan::Limited { .. }) {
            return Some(LIMITED);
        }
        let lane = chance.random_bool(0.35).then(|| LANES[chance.random_range(0..LANES.len())])?;
        // What one takes after the other is soon more than is worked off.
        let is_too_much = lane.limit == Some(1) && (plan.is_long() || chance.random_bool(0.5));
        (!is_too_much).then_some(lane.name)
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
            360..380 => Plan::Limited { times: chance.random_range(1..3) },
            _ => Plan::Succeed { ms: chance.random_range(0..60) },
        }
    }
}

impl<J> Order<J> {
    /// Just this job.
    fn of(job: J, entry: Entry) -> Self {
        let (delay, expires_in, max_attempts, taken_after) = (None, None, None, None);
        Self { job, delay, priority: 0, expires_in, max_attempts, entry, repeated: false, taken_after }
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
            "Any",
            "hang",
            "Carry",
            "Block",
            "Limited",
            "Marked",
            "Cancel",
            "Remove",
            "mode: Start",
            "mode: Window",
            "mode: Rest",
            "mode: Once",
        ] {
            assert!(orders.contains(word), "{word}");
        }
    }
}
