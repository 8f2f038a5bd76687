//! No token is used twice, and no effect is had under an old one, and nothing is written for one.

use std::collections::HashSet;

use super::Violation;
use crate::{event::What, facts::Facts};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (id, events) in &facts.events {
        let (mut begun, mut newest) = (HashSet::new(), 0);
        for event in events {
            let fence = event.fence;
            let what = match event.what {
                What::Begin => {
                    newest = newest.max(fence);
                    if begun.insert(fence) {
                        continue;
                    }
                    format!("{id} ran twice under the token {fence}")
                }
                What::Effect if fence < newest => format!("{id} had its effect under {fence}, after {newest} began"),
                What::ToldLate => format!("a report for {id} under {fence} was kept, after {newest} had begun"),
                _ => continue,
            };
            wrong.push(Violation::of(*id, what));
        }
    }
    wrong
}
