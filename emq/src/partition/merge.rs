//! What several partitions answer, made into what one queue would; and what is said of one queue, in shares.

use std::collections::HashMap;

use crate::store::{Counts, Listed, ListedLane, Rate};

/// The sums. Paused is a queue all of whose partitions are.
pub(super) fn counts(partitions: &[Counts]) -> Counts {
    let paused = !partitions.is_empty() && partitions.iter().all(|counts| counts.paused);
    partitions.iter().fold(Counts { paused, ..Counts::default() }, |sum, counts| Counts {
        pending: sum.pending + counts.pending,
        active: sum.active + counts.active,
        scheduled: sum.scheduled + counts.scheduled,
        dead: sum.dead + counts.dead,
        remembered: sum.remembered + counts.remembered,
        completed: sum.completed + counts.completed,
        failed: sum.failed + counts.failed,
        paused,
        lanes: sum.lanes + counts.lanes,
        parked: sum.parked + counts.parked,
    })
}

/// Jobs in the order of one queue: by what they are ordered by, and then by their ids.
pub(super) fn jobs(heads: Vec<Vec<Listed>>) -> Vec<Listed> {
    let mut all: Vec<Listed> = heads.into_iter().flatten().collect();
    all.sort_by(|one, other| one.score.total_cmp(&other.score).then_with(|| one.id.cmp(&other.id)));
    all
}

/// Lanes, that with the most jobs in front. One whose jobs wait in two partitions, since their number has changed, is one.
pub(super) fn lanes(heads: Vec<Vec<ListedLane>>) -> Vec<ListedLane> {
    let mut waiting: HashMap<String, u64> = HashMap::new();
    for lane in heads.into_iter().flatten() {
        *waiting.entry(lane.name).or_default() += lane.waiting;
    }
    let mut all: Vec<ListedLane> = waiting.into_iter().map(|(name, waiting)| ListedLane { name, waiting }).collect();
    all.sort_by(|one, other| other.waiting.cmp(&one.waiting).then_with(|| other.name.cmp(&one.name)));
    all
}

pub(super) fn page<T>(all: Vec<T>, offset: u64, count: usize) -> Vec<T> {
    all.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(count).collect()
}

/// What partition `at` has of a limit; all of them together have it all.
pub(super) fn share(limit: u32, partitions: u32, at: u32) -> u32 {
    limit / partitions + u32::from(at < limit % partitions)
}

/// What each partition has of a rate: as many jobs in a time that is the longer the more partitions there are.
pub(super) fn share_of_rate(rate: Rate, partitions: u32) -> Rate {
    Rate::per(rate.max(), rate.period().saturating_mul(partitions)).burst(rate.bursts() / partitions)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::Minted;

    #[test]
    fn counts_add_up_and_a_queue_is_paused_if_all_of_it_is() {
        let one = Counts { pending: 1, active: 2, completed: 3, paused: true, ..Counts::default() };
        let other = Counts { pending: 10, dead: 5, parked: 7, ..Counts::default() };
        let sum = counts(&[one, other]);
        assert_eq!((sum.pending, sum.active, sum.completed, sum.dead, sum.parked), (11, 2, 3, 5, 7));
        assert!(!sum.paused);
        assert!(counts(&[one, one]).paused);
        assert!(!counts(&[]).paused);
    }

    #[test]
    fn jobs_stand_as_in_one_queue_and_a_page_is_cut_out_of_all_of_them() {
        let listed: Vec<Listed> = (0..6).map(|n| Listed { id: Minted::next(0).0, score: f64::from(n % 2) }).collect();
        let heads = vec![vec![listed[2], listed[3]], vec![], vec![listed[0], listed[4], listed[1], listed[5]]];
        let expected: Vec<Listed> = [0, 2, 4, 1, 3, 5].iter().map(|at| listed[*at]).collect();
        let all = jobs(heads);
        assert_eq!(all, expected);
        assert_eq!(page(all.clone(), 1, 3), expected[1..4]);
        assert!(page(all, 6, 3).is_empty());
    }

    #[test]
    fn a_lane_of_two_partitions_is_one() {
        let lane = |name: &str, waiting| ListedLane { name: name.into(), waiting };
        let all = lanes(vec![vec![lane("a", 3), lane("b", 2)], vec![lane("b", 2), lane("c", 1)]]);
        assert_eq!(all, [lane("b", 4), lane("a", 3), lane("c", 1)]);
    }

    #[test]
    fn the_shares_of_a_limit_are_the_limit() {
        for (limit, partitions) in [(0, 3), (3, 3), (10, 3), (16, 16), (u32::MAX, 7)] {
            let shares: Vec<u32> = (0..partitions).map(|at| share(limit, partitions, at)).collect();
            assert_eq!(shares.iter().sum::<u32>(), limit);
            assert!(limit < partitions || shares.iter().all(|share| *share > 0));
        }
    }

    #[test]
    fn the_shares_of_a_rate_are_the_rate() {
        let second = Duration::from_secs(1);
        let share = share_of_rate(Rate::per(50, second).burst(33), 16);
        assert_eq!(share, Rate::per(50, second * 16).burst(2));
        assert_eq!(share_of_rate(Rate::per(50, second), 16).bursts(), 1, "each has to start at all");
        assert_eq!(share_of_rate(Rate::per(1, Duration::MAX), 16).max(), 1);
    }
}
