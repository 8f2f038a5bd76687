//! Which partition a job belongs to.

use crate::{job::JobId, store::Item};

/// The partition of a job: that of its group, else of its deduplication key, else of its id.
pub(super) fn of_item(item: &Item, partitions: u16) -> u16 {
    match (&item.group, &item.unique) {
        (Some(group), _) => of_group(group.as_str(), partitions),
        (None, Some(unique)) => jump(hash(unique.key_on_the_wire().as_bytes()), partitions),
        (None, None) => of_id(item.id, partitions),
    }
}

pub(super) fn of_group(group: &str, partitions: u16) -> u16 {
    jump(hash(group.as_bytes()), partitions)
}

/// Of a job that has neither group nor deduplication key.
pub(super) fn of_id(id: JobId, partitions: u16) -> u16 {
    jump(hash(id.as_str().as_bytes()), partitions)
}

/// FNV-1a, of 64 bits: all that enqueue a job have to agree, whatever their version and platform.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Jump consistent hash (Lamping and Veach, 2014): when there are more partitions, keys go to the new ones, and no key
/// from one of the old to another.
fn jump(mut key: u64, partitions: u16) -> u16 {
    let mut place = 0;
    let mut next = 0.0;
    while next < f64::from(partitions) {
        place = next as u16;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = (f64::from(place) + 1.0) * (f64::from(1_u32 << 31) / ((key >> 33) as f64 + 1.0));
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{LaneName, Minted, Unique};

    fn item(group: Option<&str>, unique: Option<&str>) -> Item {
        Item {
            unique: unique.map(Unique::key),
            group: group.map(|group| LaneName::new(group).unwrap()),
            ..Item::bare(Minted::next(0).0, "{}")
        }
    }

    fn ids(count: usize) -> Vec<JobId> {
        (0..count).map(|_| Minted::next(7).0).collect()
    }

    /// All that enqueue have to agree, also those of another version.
    #[test]
    fn the_places_are_pinned() {
        let place = |id: &str| of_id(id.parse().unwrap(), 16);
        let places = ["JOB0JZGkP9AMvv", "JOB09nSpDrOfNX", "JOB0000000Hb84"].map(place);
        assert_eq!((places, of_group("tenant-7", 16)), ([14, 12, 11], 14));
    }

    #[test]
    fn a_lane_is_whole_and_a_key_is_held_in_one_place() {
        for n in 0..50 {
            let (group, key) = (format!("tenant-{n}"), format!("invoice-{n}"));
            let of_lane = of_item(&item(Some(&group), None), 16);
            assert_eq!(of_item(&item(Some(&group), Some(&key)), 16), of_lane, "also with a key");
            assert_eq!(of_group(&group, 16), of_lane);
            let of_key = of_item(&item(None, Some(&key)), 16);
            assert_eq!(of_item(&item(None, Some(&key)), 16), of_key);
        }
    }

    #[test]
    fn an_id_alone_leads_to_a_job_that_has_nothing_else() {
        for _ in 0..50 {
            let item = item(None, None);
            assert_eq!(of_item(&item, 16), of_id(item.id, 16));
        }
    }

    #[test]
    fn ids_that_are_minted_one_after_the_other_are_spread_evenly() {
        for partitions in [2, 3, 16, 61] {
            let mut counts = vec![0_u32; usize::from(partitions)];
            ids(1_000 * usize::from(partitions)).iter().for_each(|id| counts[usize::from(of_id(*id, partitions))] += 1);
            assert!(counts.iter().all(|count| count.abs_diff(1_000) < 200), "{partitions}: {counts:?}");
        }
    }

    #[test]
    fn with_more_partitions_keys_go_to_the_new_ones_alone_and_no_more_than_their_share() {
        let ids = ids(16_000);
        for (before, after) in [(1, 2), (8, 16), (15, 16), (16, 17)] {
            let moved = ids.iter().filter(|id| of_id(**id, before) != of_id(**id, after));
            let moved: Vec<u16> = moved.map(|id| of_id(*id, after)).collect();
            assert!(moved.iter().all(|to| *to >= before), "{before} to {after}");
            let share = ids.len() * usize::from(after - before) / usize::from(after);
            assert!(moved.len().abs_diff(share) < share / 5 + 100, "{} of {share}", moved.len());
        }
    }
}
