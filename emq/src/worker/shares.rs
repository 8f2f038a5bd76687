use std::sync::atomic::{AtomicUsize, Ordering};

/// How the slots of a worker are shared among its queues: what each has in hand, and what is reserved for it.
#[derive(Debug)]
pub(super) struct Shares {
    slots: usize,
    queues: Vec<Share>,
}

#[derive(Debug)]
struct Share {
    /// How many it may have in hand at most.
    limit: usize,
    /// How many slots no other queue may take.
    reserved: usize,
    in_hand: AtomicUsize,
}

impl Shares {
    /// The slots of a worker, and per queue its limit and how many are reserved for it.
    pub(super) fn new(slots: usize, queues: impl Iterator<Item = (Option<usize>, usize)>) -> Self {
        let share = |(limit, reserved): (Option<usize>, _)| Share {
            limit: limit.unwrap_or(usize::MAX),
            reserved,
            in_hand: AtomicUsize::new(0),
        };
        Self { slots, queues: queues.map(share).collect() }
    }

    /// How many more jobs of a queue may be in hand if so many of them leave, when the others have what they have and may
    /// get what is reserved for them.
    pub(super) fn room(&self, queue: usize, leave: usize) -> usize {
        let in_hand = |share: &Share| share.in_hand.load(Ordering::Relaxed);
        let others = self.queues.iter().enumerate().filter(|(at, _)| *at != queue);
        let taken: usize = others.map(|(_, share)| in_hand(share).max(share.reserved)).sum();
        let own = &self.queues[queue];
        (own.limit.min(self.slots.saturating_sub(taken)).saturating_add(leave)).saturating_sub(in_hand(own))
    }

    pub(super) fn took(&self, queue: usize, jobs: usize) {
        self.queues[queue].in_hand.fetch_add(jobs, Ordering::Relaxed);
    }

    pub(super) fn let_go(&self, queue: usize, jobs: usize) {
        self.queues[queue].in_hand.fetch_sub(jobs, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(shares: &Shares) -> Vec<usize> {
        (0..shares.queues.len()).map(|queue| shares.room(queue, 0)).collect()
    }

    #[test]
    fn all_queues_share_what_nobody_has_reserved() {
        let shares = Shares::new(4, [(None, 0), (Some(2), 0)].into_iter());
        assert_eq!(rooms(&shares), [4, 2]);
        shares.took(0, 3);
        assert_eq!(rooms(&shares), [1, 1]);
        shares.took(1, 1);
        assert_eq!(rooms(&shares), [0, 0]);
        assert_eq!((shares.room(0, 2), shares.room(1, 2)), (2, 2), "in the places of those that leave");
        shares.let_go(0, 1);
        assert_eq!(rooms(&shares), [1, 1]);
    }

    #[test]
    fn a_reserved_slot_is_nobody_elses_whether_it_is_in_use_or_not() {
        let shares = Shares::new(4, [(None, 0), (None, 3)].into_iter());
        assert_eq!(rooms(&shares), [1, 4]);
        shares.took(0, 1);
        assert_eq!(rooms(&shares), [0, 3]);
        shares.took(1, 3);
        assert_eq!(rooms(&shares), [0, 0]);
        shares.let_go(0, 1);
        assert_eq!(rooms(&shares), [1, 1], "beyond what is reserved, it takes from all");
        shares.took(1, 1);
        shares.let_go(1, 1);
        assert_eq!(rooms(&shares), [1, 1]);
    }
}
