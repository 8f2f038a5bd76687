//! What was accepted is done, dead, removed, cancelled, thrown away, or waits; and what the server has counted is that.

use std::ops::RangeInclusive;

use emq::Counts;

use super::Violation;
use crate::{
    book::{Book, Taken},
    facts::Facts,
    jobs::{End, QUEUE, SCRAP},
};

pub(super) fn check(facts: &Facts, book: &Book) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, is: u64, should_be: RangeInclusive<u64>| {
        if !should_be.contains(&is) {
            let (least, most) = should_be.into_inner();
            wrong.push(Violation::new(format!("{is} {what}, and it should be {least} to {most}")));
        }
    };
    let jobs = facts.of_queue(QUEUE);
    let (accepted, mortal, removed_dead) = jobs.fold((0, 0, 0), |(accepted, mortal, removed), (id, entry)| {
        let is_mortal = u64::from(matches!(entry.end, End::Dead { .. }));
        (accepted + 1, mortal + is_mortal, removed + is_mortal * u64::from(facts.taken.contains_key(&id)))
    });
    let [removed, perhaps, cancelled] =
        [Taken::Removed, Taken::PerhapsRemoved, Taken::Cancelled].map(|taken| facts.taken_so(taken));
    let expired = facts.expired(QUEUE);
    let Counts { completed, dead, failed, .. } = facts.counts;
    let waiting = facts.counts.unfinished();
    // Each way in which a job can end, once: whoever adds one adds it here, and to `End`. What has expired is dead.
    let somewhere = completed + dead + removed + cancelled + waiting;
    let to_be_done = accepted - mortal - (removed - removed_dead) - cancelled - expired;
    let to_be_dead = mortal - removed_dead + expired;
    let [revived, perhaps_revived] = [&book.revived, &book.perhaps_revived].map(Book::counted);
    let buried = mortal + revived + expired;
    check("jobs wait", waiting, 0..=0);
    check("jobs are done, dead, removed, cancelled or wait", somewhere, accepted - perhaps..=accepted);
    check("jobs were done", completed, to_be_done - perhaps..=to_be_done);
    check("dead letters are kept", dead, to_be_dead..=to_be_dead);
    // A dead letter that was revived has died again.
    check("jobs were buried", failed, buried..=buried + perhaps_revived);

    let accepted = facts.of_queue(SCRAP).count() as u64;
    let Counts { completed, dead, .. } = facts.scrap;
    let waiting = facts.scrap.unfinished();
    let somewhere = completed + dead + Book::counted(&book.scrapped) + waiting;
    // What a call has thrown away that was never answered is the rest.
    let least = if Book::counted(&book.perhaps_scrapped) == 0 { accepted } else { 0 };
    check("jobs wait that may be thrown away", waiting, 0..=0);
    check("jobs that may be thrown away are done, dead, thrown away or wait", somewhere, least..=accepted);
    wrong
}
