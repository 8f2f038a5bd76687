//! What a run has told of itself is kept with its dead letter: each line once, in its order, and the last progress.

use std::collections::BTreeSet;

use super::Violation;
use crate::{event::What, facts::Facts, jobs::QUEUE};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (id, _) in facts.of_queue(QUEUE) {
        let Some(dead) = facts.dead.get(&id).filter(|dead| !dead.has_expired()) else { continue };
        let lines: Vec<u64> = dead.log.iter().filter_map(|line| line.parse().ok()).collect();
        if lines.len() != dead.log.len() || !lines.is_sorted_by(|one, next| one < next) {
            wrong.push(Violation::of(id, format!("{id} has the log {:?}", dead.log)));
        }
        let told: BTreeSet<u64> = facts.all(id, What::Told).map(|event| event.fence).collect();
        if let Some(lost) = told.iter().find(|fence| !lines.contains(fence)) {
            wrong.push(Violation::of(id, format!("{id} has lost the line of its run {lost}: {:?}", dead.log)));
        }
        let progress = dead.stored.progress_as::<u64>().ok().flatten();
        if progress < told.last().copied() {
            wrong.push(Violation::of(id, format!("{id} has the progress {progress:?}, and had {:?}", told.last())));
        }
    }
    wrong
}
