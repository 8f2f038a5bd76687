//! Which slots run when a worker looks: pure, so that it is tested without a server.

use std::{collections::VecDeque, fmt, time::Duration};

use super::{Schedule, schedule::Slots};

/// A slot that is later than this has been missed: 1 minute.
///
/// A restart of the workers is shorter, and their slots run when they are back. A longer absence is what
/// [`Missed`] is about.
pub const MISSED_AFTER: Duration = Duration::from_secs(60);

/// How many missed slots can be made up for: 500.
pub const MAX_BACKFILL: u32 = 500;

/// What becomes of slots at which no worker was there, that is, which are more than a minute late when one looks. Slots of
/// the last minute run, each of them.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::{Missed, Recurrence, Schedule};
///
/// let hourly = Recurrence::new(Schedule::every(Duration::from_secs(3_600))).missed(Missed::Once);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missed {
    /// None of them runs.
    #[default]
    Skip,
    /// The latest of them runs, for all.
    Once,
    /// The latest of them run, so many at most (and no more than 500), the oldest first.
    Backfill(u32),
}

/// What becomes of a slot whose predecessor's job hasn't ended yet: it waits, runs, or waits to be retried.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::{Overlap, Recurrence, Schedule};
///
/// let hourly = Recurrence::new(Schedule::every(Duration::from_secs(3_600))).overlap(Overlap::Skip);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overlap {
    /// It gets its job all the same, and the two may run at once.
    #[default]
    Allow,
    /// It gets none.
    Skip,
    /// It gets its job when the other one has ended, at most a beat of a worker later. Slots behind it wait for their
    /// turn, and count as missed when that is more than a minute late.
    Wait,
}

/// A schedule with what to do when it can't be kept.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::{Missed, Overlap, Recurrence, Schedule};
///
/// let hourly = Schedule::every(Duration::from_secs(3_600));
/// let recurrence = Recurrence::new(hourly).missed(Missed::Backfill(24)).overlap(Overlap::Wait);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    pub(crate) schedule: Schedule,
    pub(crate) missed: Missed,
    pub(crate) overlap: Overlap,
}

impl Recurrence {
    /// A schedule of which each slot runs that isn't missed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::{Recurrence, Schedule};
    ///
    /// let recurrence = Recurrence::new(Schedule::every(Duration::from_secs(60)));
    /// assert_eq!(recurrence, Schedule::every(Duration::from_secs(60)).into());
    /// ```
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, missed: Missed::default(), overlap: Overlap::default() }
    }

    /// Says what becomes of slots at which no worker was there; [`Missed::Skip`] by default.
    ///
    /// ```
    /// # let recurrence = emq::Recurrence::new(emq::Schedule::every(std::time::Duration::from_secs(60)));
    /// let recurrence = recurrence.missed(emq::Missed::Once);
    /// ```
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Says what becomes of a slot whose predecessor's job hasn't ended; [`Overlap::Allow`] by default.
    ///
    /// ```
    /// # let recurrence = emq::Recurrence::new(emq::Schedule::every(std::time::Duration::from_secs(60)));
    /// let recurrence = recurrence.overlap(emq::Overlap::Skip);
    /// ```
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }
}

impl From<Schedule> for Recurrence {
    fn from(schedule: Schedule) -> Self {
        Self::new(schedule)
    }
}

/// As they stand on the server.
impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skip => f.write_str("skip"),
            Self::Once => f.write_str("once"),
            Self::Backfill(most) => write!(f, "backfill {most}"),
        }
    }
}

impl Missed {
    /// A text that isn't known stands for the default: another version may have written it.
    pub(crate) fn read(text: &str) -> Self {
        match text.split_once(' ') {
            None if text == "once" => Self::Once,
            Some(("backfill", most)) => most.parse().map_or(Self::Skip, Self::Backfill),
            _ => Self::Skip,
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Wait => "wait",
        })
    }
}

impl Overlap {
    /// As [`Missed::read`].
    pub(crate) fn read(text: &str) -> Self {
        match text {
            "skip" => Self::Skip,
            "wait" => Self::Wait,
            _ => Self::Allow,
        }
    }
}

/// What a look finds: the slots that run, the oldest first, and the one after them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) slots: Vec<i64>,
    pub(crate) next: Option<i64>,
}

/// The slots that run now, when `first` is the earliest that hasn't been dealt with.
///
/// `held`: it has waited for the job of another slot, so it isn't missed, however late it is. At most `most` slots, more
/// than [`MAX_BACKFILL`]; those that are left are due still.
pub(crate) fn due(slots: &Slots, first: i64, now: i64, missed: Missed, held: bool, most: usize) -> Due {
    let early = now - MISSED_AFTER.as_millis() as i64;
    let mut run = Vec::new();
    let mut at = Some(first);
    if held {
        run.push(first);
        at = slots.next_after(first);
    }
    if let Some(oldest) = at.filter(|slot| *slot < early) {
        let count = match missed {
            Missed::Skip => 0,
            Missed::Once => 1,
            Missed::Backfill(most) => most.min(MAX_BACKFILL) as usize,
        };
        run.extend(latest(slots, oldest, early, count));
        at = slots.next_after(early - 1);
    }
    while let Some(slot) = at.filter(|slot| *slot <= now && run.len() < most) {
        run.push(slot);
        at = slots.next_after(slot);
    }
    Due { slots: run, next: at }
}

/// The latest slots of those from `first` on that are before `end`.
///
/// There may have been millions: it looks at a stretch before the end, and at ever longer ones until it has enough.
fn latest(slots: &Slots, first: i64, end: i64, count: usize) -> VecDeque<i64> {
    let mut stretch = MISSED_AFTER.as_millis() as i64;
    loop {
        let begin = first.max(end.saturating_sub(stretch));
        let mut found = VecDeque::with_capacity(count + 1);
        let mut at = slots.next_after(begin - 1).filter(|_| count > 0);
        while let Some(slot) = at.filter(|slot| *slot < end) {
            found.push_back(slot);
            if found.len() > count {
                found.pop_front();
            }
            at = slots.next_after(slot);
        }
        if found.len() == count || begin == first {
            return found;
        }
        stretch = stretch.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const WEEK: i64 = 7 * 24 * HOUR;

    fn hourly() -> Slots {
        Schedule::every(Duration::from_secs(3_600)).slots(0).unwrap()
    }

    /// A look 34 minutes after a full hour, a week after the last.
    fn after_a_week(missed: Missed) -> Due {
        due(&hourly(), HOUR, WEEK + 34 * 60_000, missed, false, 1_000)
    }

    #[test]
    fn of_the_slots_of_a_week_without_workers_as_many_run_as_asked_for() {
        let next = Some(WEEK + HOUR);
        assert_eq!(after_a_week(Missed::Skip), Due { slots: vec![], next });
        assert_eq!(after_a_week(Missed::Once), Due { slots: vec![WEEK], next });
        let three = vec![WEEK - 2 * HOUR, WEEK - HOUR, WEEK];
        assert_eq!(after_a_week(Missed::Backfill(3)), Due { slots: three, next });
        assert_eq!(after_a_week(Missed::Backfill(u32::MAX)).slots.len(), 168, "all that there were");
        assert!(after_a_week(Missed::Backfill(0)).slots.is_empty());
    }

    #[test]
    fn a_slot_of_the_last_minute_runs_whatever_the_policy() {
        for missed in [Missed::Skip, Missed::Once, Missed::Backfill(2)] {
            for late in [0, 1, 59_999, 60_000] {
                let due = due(&hourly(), HOUR, HOUR + late, missed, false, 1_000);
                assert_eq!(due, Due { slots: vec![HOUR], next: Some(2 * HOUR) }, "{late} ms late");
            }
        }
        assert!(due(&hourly(), HOUR, HOUR + 60_001, Missed::Skip, false, 1_000).slots.is_empty());
    }

    #[test]
    fn missed_and_late_slots_run_in_their_order() {
        let slots = Schedule::every(Duration::from_secs(20)).slots(0).unwrap();
        let found = due(&slots, 20_000, 200_000, Missed::Once, false, 1_000);
        assert_eq!(found.slots, [120_000, 140_000, 160_000, 180_000, 200_000]);
        assert_eq!(found.next, Some(220_000));
    }

    #[test]
    fn what_is_too_much_for_one_call_is_due_still() {
        let slots = Schedule::every(Duration::from_millis(10)).slots(0).unwrap();
        let found = due(&slots, 10, 59_000, Missed::Skip, false, 1_000);
        assert_eq!((found.slots.len(), found.next), (1_000, Some(10_010)));
    }

    #[test]
    fn a_slot_that_was_held_back_isnt_missed() {
        let found = due(&hourly(), HOUR, WEEK + 34 * 60_000, Missed::Skip, true, 1_000);
        assert_eq!(found, Due { slots: vec![HOUR], next: Some(WEEK + HOUR) });
    }

    #[test]
    fn no_slot_is_due_before_its_time() {
        assert_eq!(due(&hourly(), HOUR, HOUR - 1, Missed::Once, false, 1_000), Due { slots: vec![], next: Some(HOUR) });
    }

    #[test]
    fn years_of_missed_slots_are_no_work() {
        let slots = Schedule::every(Duration::from_millis(10)).slots(0).unwrap();
        let started = std::time::Instant::now();
        let found = due(&slots, 10, 50 * 365 * 24 * HOUR, Missed::Backfill(500), false, 1_000);
        assert_eq!(found.slots.len(), 1_000);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn policies_come_back_from_their_texts() {
        for missed in [Missed::Skip, Missed::Once, Missed::Backfill(7)] {
            assert_eq!(Missed::read(&missed.to_string()), missed);
        }
        for overlap in [Overlap::Allow, Overlap::Skip, Overlap::Wait] {
            assert_eq!(Overlap::read(&overlap.to_string()), overlap);
        }
        assert_eq!((Missed::read("twice"), Overlap::read("twice")), (Missed::Skip, Overlap::Allow));
    }
}
