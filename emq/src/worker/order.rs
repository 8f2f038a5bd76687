/// Which of its queues a worker asks next.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// The first that may have work.
    Strict,
    /// By their weights.
    Shared(Turns),
}

impl Order {
    /// The next queue to ask, of those that may have work and have room.
    pub(super) fn next(&self, count: usize, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Self::Strict => (0..count).find(|queue| is_ready(*queue)),
            Self::Shared(turns) => turns.next(is_ready),
        }
    }

    /// Says how many jobs a queue had when it was asked.
    pub(super) fn took(&mut self, queue: usize, jobs: usize) {
        if let Self::Shared(turns) = self {
            turns.took(queue, jobs);
        }
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
        let mut order = Order::Strict;
        order.took(0, 100);
        assert_eq!(order.next(3, |_| true), Some(0));
        assert_eq!(order.next(3, |queue| queue == 2), Some(2));
        assert_eq!(order.next(3, |_| false), None);
    }
}
