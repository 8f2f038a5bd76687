//! The queues that a partitioned queue consists of.
//!
//! The first partition is the queue itself, so that a queue can be divided later, and whoever knows nothing of partitions
//! still enqueues into one that is served. The others are queues beside it. Which slot of a Cluster a queue lies in is
//! decided by its name: so each name has two letters that put it where it is to be. However many partitions there are,
//! the first so many are spread over all slots as evenly as it goes, and with them over the nodes.

use crate::{
    job::{NameError, QueueName},
    store::{SLOTS, slot_of},
};

/// The names of the first `count` partitions of a queue.
pub(crate) fn names(queue: &QueueName, count: u16) -> Result<Vec<QueueName>, NameError> {
    let first = slot_of(queue.as_str());
    let others = (1..count).map(|number| name(queue, first, number));
    std::iter::once(Ok(queue.clone())).chain(others).collect()
}

fn name(queue: &QueueName, first: u16, number: u16) -> Result<QueueName, NameError> {
    let wanted = (first + fraction(number)) % SLOTS;
    let names = letters().map(|letters| format!("{queue}.{number}-{letters}"));
    let name = names.min_by_key(|name| distance(slot_of(name), wanted)).unwrap_or_default();
    QueueName::new(name)
}

fn letters() -> impl Iterator<Item = String> {
    ('a'..='z').flat_map(|one| ('a'..='z').map(move |other| String::from_iter([one, other])))
}

/// Where the partition of this number lies between the first slot (0) and the last: in the middle of the largest gap that
/// those before it leave. That is the van der Corput sequence: the bits of the number, read backwards.
fn fraction(number: u16) -> u16 {
    number.reverse_bits() / (u16::MAX / SLOTS + 1)
}

/// How far two slots are apart on the ring of all slots.
fn distance(one: u16, other: u16) -> u16 {
    let apart = one.abs_diff(other);
    apart.min(SLOTS - apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(queue: &str, count: u16) -> Vec<String> {
        let queue = QueueName::new(queue).unwrap();
        names(&queue, count).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_partition_is_the_queue_itself() {
        assert_eq!(named("mail", 1), ["mail"]);
        assert_eq!(named("mail", 0), ["mail"], "a queue has one at least");
    }

    /// They stand on servers: no version may spell them otherwise.
    #[test]
    fn the_names_are_pinned() {
        assert_eq!(named("mail", 5), ["mail", "mail.1-ds", "mail.2-sz", "mail.3-pc", "mail.4-hz"]);
    }

    #[test]
    fn more_partitions_leave_the_names_of_those_before_as_they_are() {
        let many = named("reports.2024_v-1", 64);
        for count in [1, 2, 3, 16, 63] {
            assert_eq!(named("reports.2024_v-1", count), many[..usize::from(count)]);
        }
    }

    /// Nodes of a Cluster have ranges of slots of about the same length.
    #[test]
    fn each_node_of_a_cluster_has_its_share_of_the_partitions() {
        for queue in ["mail", "bench", "a", "reports.2024_v-1", "north-south", "q7"] {
            for (partitions, nodes) in [(3, 3), (8, 3), (16, 3), (16, 4), (16, 5), (16, 6), (32, 6), (64, 9)] {
                let mut shares = vec![0; nodes];
                for name in named(queue, partitions) {
                    shares[usize::from(slot_of(&name)) * nodes / usize::from(SLOTS)] += 1;
                }
                let fair = usize::from(partitions).div_ceil(nodes);
                let largest = shares.iter().max().unwrap();
                // A range ends somewhere between two partitions: one more at most.
                assert!(*largest <= fair + 1, "{queue}, {partitions} on {nodes}: {shares:?}");
            }
        }
    }

    #[test]
    fn a_queue_whose_name_has_no_room_for_a_number_cant_be_divided() {
        let queue = QueueName::new("a".repeat(126)).unwrap();
        assert_eq!(names(&queue, 1).unwrap().len(), 1);
        assert_eq!(names(&queue, 2).unwrap_err(), NameError::TooLong { len: 131 });
    }
}
