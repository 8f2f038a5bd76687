use std::ops::Range;

/// Which of its queues a worker asks next, and which partition of it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    rank: Rank,
    queues: Vec<Partitions>,
}

/// Which queue comes first.
#[derive(Clone, Debug)]
pub(super) enum Rank {
    /// The first that may have work.
    Strict,
    /// By their weights.
    Shared(Turns),
}

/// The partitions of a queue, which take turns.
#[derive(Clone, Debug)]
struct Partitions {
    all: Range<usize>,
    last: usize,
}

impl Order {
    /// For queues of so many partitions each, which are numbered one queue after the other.
    pub(super) fn new(rank: Rank, partitions: impl Iterator<Item = usize>) -> Self {
        let mut first = 0;
        let queues = partitions.map(|count| {
            let all = first..first + count;
            first = all.end;
            Partitions { last: all.end.saturating_sub(1), all }
        });
        Self { queues: queues.collect(), rank }
    }

    /// The next partition to ask, of those that may have work and have room.
    pub(super) fn next(&self, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        let of = |queue: usize| self.queues[queue].next(&is_ready);
        let queue = match &self.rank {
            Rank::Strict => (0..self.queues.len()).find(|queue| of(*queue).is_some()),
            Rank::Shared(turns) => turns.next(|queue| of(queue).is_some()),
        };
        queue.and_then(of)
    }

    /// Says how many jobs a partition had when it was asked.
    pub(super) fn took(&mut self, partition: usize, jobs: usize) {
        let Some(queue) = self.queues.iter().position(|queue| queue.all.contains(&partition)) else { return };
        self.queues[queue].last = partition;
        if let Rank::Shared(turns) = &mut self.rank {
            turns.took(queue, jobs);
        }
    }
}

impl Partitions {
    fn next(&self, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        let after = (self.last + 1).min(self.all.end);
        (after..self.all.end).chain(self.all.start..after).find(|partition| is_ready(*partition))
    }
}

/// Start-time fair queueing: each queue has a clock that its jobs advance, the less the greater its weight; who is behind
/// is next. A queue that had no work doesn't catch up on what it has missed.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    queues: Vec<Clock>,
    /// Of the queue that was asked last, when it was asked.
    now: f64,
    last: usize,
}

#[derive(Clone, Debug)]
struct Clock {
    weight: f64,
    time: f64,
}

impl Turns {
    /// The weights of the queues; 0 counts as 1.
    pub(super) fn new(weights: impl Iterator<Item = u32>) -> Self {
        let clock = |weight: u32| Clock { weight: f64::from(weight.max(1)), time: 0.0 };
        let queues: Vec<Clock> = weights.map(clock).collect();
        let last = queues.len().saturating_sub(1);
        Self { queues, now: 0.0, last }
    }

    /// When a queue would begin, if it were asked now.
    fn start(&self, queue: usize) -> f64 {
        self.queues[queue].time.max(self.now)
    }

    fn next(&self, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.queues.len();
        // Of those that are equally far, the one whose last turn is longest ago.
        let in_turn = (1..=count).map(|n| (self.last + n) % count).filter(|queue| is_ready(*queue));
        in_turn.min_by(|one, other| self.start(*one).total_cmp(&self.start(*other)))
    }

    fn took(&mut self, queue: usize, jobs: usize) {
        let start = self.start(queue);
        self.now = start;
        self.last = queue;
        let clock = &mut self.queues[queue];
        clock.time = start + jobs as f64 / clock.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks again and again, `batch` jobs each time, and answers how many jobs each queue had of so many.
    fn served(turns: &mut Turns, jobs: usize, batch: usize, is_ready: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut served = vec![0; turns.queues.len()];
        while served.iter().sum::<usize>() < jobs {
            let queue = turns.next(&is_ready).unwrap();
            turns.took(queue, batch);
            served[queue] += batch;
        }
        served
    }

    #[test]
    fn queues_have_jobs_in_proportion_to_their_weights_whatever_the_batch() {
        for batch in [1, 7] {
            let mut turns = Turns::new([6, 3, 1].into_iter());
            let served = served(&mut turns, 7_000, batch, |_| true);
            for (served, wanted) in served.iter().zip([4_200, 2_100, 700]) {
                assert!(served.abs_diff(wanted) <= 14, "{served} of {wanted} in batches of {batch}");
            }
        }
    }

    #[test]
    fn equal_queues_take_turns_also_when_they_have_nothing() {
        let mut turns = Turns::new([1, 1, 1].into_iter());
        let mut order = Vec::new();
        for jobs in [0, 0, 0, 1, 1, 1, 0] {
            let queue = turns.next(|_| true).unwrap();
            turns.took(queue, jobs);
            order.push(queue);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_queue_that_had_no_work_doesnt_catch_up() {
        let mut turns = Turns::new([1, 1].into_iter());
        served(&mut turns, 1_000, 1, |queue| queue == 0);
        assert_eq!(served(&mut turns, 10, 1, |_| true), [5, 5]);
    }

    #[test]
    fn in_a_strict_order_the_first_that_may_have_work_is_next() {
        let mut order = Order::new(Rank::Strict, [1, 1, 1].into_iter());
        order.took(0, 100);
        assert_eq!(order.next(|_| true), Some(0));
        assert_eq!(order.next(|queue| queue == 2), Some(2));
        assert_eq!(order.next(|_| false), None);
    }

    #[test]
    fn a_queue_of_many_partitions_has_no_more_turns_than_one_of_one_and_its_partitions_take_turns() {
        let turns = Turns::new([1, 1].into_iter());
        let mut order = Order::new(Rank::Shared(turns), [3, 1].into_iter());
        let mut took = Vec::new();
        for _ in 0..8 {
            let partition = order.next(|_| true).unwrap();
            order.took(partition, 1);
            took.push(partition);
        }
        assert_eq!(took, [0, 3, 1, 3, 2, 3, 0, 3]);
    }

    #[test]
    fn in_a_strict_order_the_partitions_of_a_queue_take_turns() {
        let mut order = Order::new(Rank::Strict, [2, 1].into_iter());
        let mut took = Vec::new();
        for _ in 0..3 {
            let partition = order.next(|_| true).unwrap();
            order.took(partition, 1);
            took.push(partition);
        }
        assert_eq!(took, [0, 1, 0]);
        assert_eq!(order.next(|partition| partition != 0), Some(1));
    }
}
