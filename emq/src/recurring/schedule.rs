use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

#[cfg(feature = "cron")]
use super::cron::WallClock;

/// The shortest time between two slots.
const SHORTEST: Duration = Duration::from_millis(10);

/// The longest: 100 years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// When a recurring job runs: its slots.
///
/// A slot depends on the schedule alone, and not on when an earlier one was run, or how long that took.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use emq::Schedule;
///
/// let minutes = |minutes: u64| UNIX_EPOCH + Duration::from_secs(60 * minutes);
/// let schedule = Schedule::every(Duration::from_secs(600)).starting_at(minutes(5));
/// assert_eq!(schedule.next_after(minutes(0))?, Some(minutes(5)));
/// assert_eq!(schedule.next_after(minutes(5))?, Some(minutes(15)));
/// # Ok::<(), emq::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    when: When,
    /// No slot is before this, in Unix ms.
    from: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum When {
    Every(Duration),
    Cron { expression: String, zone: String },
}

impl Schedule {
    /// A slot every `period`, from 10 ms to 100 years in whole milliseconds: slot k is exactly k periods after the start.
    ///
    /// The start is the moment at which the server first learns of the recurring job, so its first slot is one period
    /// later; or what [`starting_at`](Self::starting_at) says.
    ///
    /// ```
    /// let schedule = emq::Schedule::every(std::time::Duration::from_secs(600));
    /// ```
    #[must_use]
    pub fn every(period: Duration) -> Self {
        Self { when: When::Every(period), from: None }
    }

    /// Slots by a cron expression of five fields, or of six that begin with the seconds; in UTC unless
    /// [`in_zone`](Self::in_zone) says otherwise. `L`, `W`, `#` and nicknames as `@daily` are understood; if both the day
    /// of the month and the day of the week are given, either of them is enough.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use emq::Schedule;
    ///
    /// let hours = |hours: u64| UNIX_EPOCH + Duration::from_secs(60 * 60 * hours);
    /// let schedule = Schedule::cron("0 9 * * MON-FRI"); // the first of January 1970 was a Thursday
    /// assert_eq!(schedule.next_after(hours(0))?, Some(hours(9)));
    /// assert_eq!(schedule.next_after(hours(24 + 9))?, Some(hours(4 * 24 + 9)));
    /// # Ok::<(), emq::ScheduleError>(())
    /// ```
    #[cfg(feature = "cron")]
    #[must_use]
    pub fn cron(expression: impl Into<String>) -> Self {
        Self { when: When::Cron { expression: expression.into(), zone: "UTC".into() }, from: None }
    }

    /// Reads a cron expression by the clocks of this time zone, such as `Europe/Berlin`; no change to one that isn't by
    /// cron.
    ///
    /// When the clocks change, an expression whose hour is `*` or has a step (`*/2`) goes on with every hour that there
    /// is: what the clock skips has no slot, and an hour that comes twice has its slots twice. Any other expression has
    /// each of its slots once: those that the clock skips are one, at the moment of the change, and of an hour that comes
    /// twice the first counts.
    ///
    /// ```
    /// let schedule = emq::Schedule::cron("30 2 * * *").in_zone("Europe/Berlin");
    /// ```
    #[cfg(feature = "cron")]
    #[must_use]
    pub fn in_zone(mut self, name: impl Into<String>) -> Self {
        if let When::Cron { zone, .. } = &mut self.when {
            *zone = name.into();
        }
        self
    }

    /// Has no slot before `start`, in whole milliseconds. Of a schedule that is [`every`](Self::every) so often it is the
    /// first slot, and all others are whole periods after it.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// // At five minutes past every full hour.
    /// let start = UNIX_EPOCH + Duration::from_secs(5 * 60);
    /// let schedule = emq::Schedule::every(Duration::from_secs(3_600)).starting_at(start);
    /// ```
    #[must_use]
    pub fn starting_at(mut self, start: SystemTime) -> Self {
        self.from = Some(unix_ms(start));
        self
    }

    /// The first slot after a moment; `None` if there is none any more. Without
    /// [`starting_at`](Self::starting_at), what is [`every`](Self::every) so often counts from that moment.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if it is none: then a recurring job with it is refused for the same reason.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// let next = emq::Schedule::every(Duration::from_secs(60)).next_after(SystemTime::now())?;
    /// assert!(next > Some(SystemTime::now()));
    /// # Ok::<(), emq::ScheduleError>(())
    /// ```
    pub fn next_after(&self, moment: SystemTime) -> Result<Option<SystemTime>, ScheduleError> {
        let moment = unix_ms(moment);
        Ok(self.slots(moment)?.next_after(moment).map(system_time))
    }

    /// The slots, of which those of [`every`](Self::every) count from `registered` unless a start is given.
    pub(crate) fn slots(&self, registered: i64) -> Result<Slots, ScheduleError> {
        match &self.when {
            When::Every(period) => {
                if *period < SHORTEST || *period > LONGEST || period.subsec_nanos() % 1_000_000 != 0 {
                    return Err(ScheduleError::Period { period: *period });
                }
                let period = period.as_millis() as i64;
                Ok(Slots::Every { period, first: self.from.unwrap_or(registered + period) })
            }
            #[cfg(feature = "cron")]
            When::Cron { expression, zone } => {
                let clock = WallClock::new(expression, zone)?;
                Ok(Slots::Cron { clock: Box::new(clock), from: self.from.unwrap_or(i64::MIN) })
            }
            #[cfg(not(feature = "cron"))]
            When::Cron { .. } => Err(ScheduleError::WithoutCron),
        }
    }
}

/// The slots of a schedule, in Unix ms.
pub(crate) enum Slots {
    Every {
        period: i64,
        first: i64,
    },
    #[cfg(feature = "cron")]
    Cron {
        clock: Box<WallClock>,
        from: i64,
    },
}

impl Slots {
    /// The first slot after a moment.
    pub(crate) fn next_after(&self, moment: i64) -> Option<i64> {
        match self {
            Self::Every { first, .. } if moment < *first => Some(*first),
            Self::Every { period, first } => {
                let passed = (moment - first).div_euclid(*period);
                period.checked_mul(passed + 1)?.checked_add(*first)
            }
            #[cfg(feature = "cron")]
            Self::Cron { clock, from } => clock.next_after(moment.max(from.saturating_sub(1))),
        }
    }
}

/// As it stands on the server, where it is read again by whichever worker is there.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.from.map_or_else(|| "-".to_owned(), |from| from.to_string());
        match &self.when {
            When::Every(period) => write!(f, "every {} {from}", period.as_millis()),
            When::Cron { expression, zone } => write!(f, "cron {zone} {from} {expression}"),
        }
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let unknown = || ScheduleError::Unknown { text: text.chars().take(100).collect() };
        let mut words = text.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(unknown);
        let (kind, what, from) = (word()?, word()?, word()?);
        let from = if from == "-" { None } else { Some(from.parse().map_err(|_| unknown())?) };
        let when = match kind {
            "every" => When::Every(Duration::from_millis(what.parse().map_err(|_| unknown())?)),
            "cron" => When::Cron { expression: word()?.to_owned(), zone: what.to_owned() },
            _ => return Err(unknown()),
        };
        Ok(Self { when, from })
    }
}

/// Why a schedule is none.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use emq::{Schedule, ScheduleError};
///
/// let error = Schedule::every(Duration::ZERO).next_after(SystemTime::now()).unwrap_err();
/// assert!(matches!(error, ScheduleError::Period { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A period that is too short, too long, or no whole number of milliseconds.
    #[error("a recurring job can't run every {period:?}: take a whole number of ms, from 10 ms to 100 years")]
    Period {
        /// The period.
        period: Duration,
    },
    /// A cron expression that can't be read.
    #[error(
        "the cron expression {expression:?} can't be read: {reason}; it has five fields, for minute, hour, day, month and weekday, or six that begin with the second"
    )]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A cron expression of a date that doesn't exist, such as the 30th of February.
    #[error("the cron expression {expression:?} names no date that there is, so it would never run")]
    Never {
        /// The expression.
        expression: String,
    },
    /// A time zone that isn't in the database.
    #[error("there is no time zone {name:?}: take a name of the IANA database, like \"Europe/Berlin\" or \"UTC\"")]
    Zone {
        /// The name.
        name: String,
    },
    /// A schedule by cron, in a program that is built without the feature `cron`.
    #[error("this program is built without emq's feature `cron`, which reads this schedule")]
    WithoutCron,
    /// A schedule on the server that another version or program has written.
    #[error("the schedule {text:?} isn't of a kind that this version knows")]
    Unknown {
        /// Its beginning.
        text: String,
    },
}

/// Unix ms, rounded up.
pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    let ms = |duration: Duration| duration.as_nanos().div_ceil(1_000_000).min(i64::MAX as u128 / 4) as i64;
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

pub(crate) fn system_time(unix_ms: i64) -> SystemTime {
    let distance = Duration::from_millis(unix_ms.unsigned_abs());
    if unix_ms < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_k_is_k_periods_after_the_start_whenever_it_is_asked_for() {
        let slots = Schedule::every(Duration::from_millis(700)).slots(1_000).unwrap();
        let mut at = 1_000;
        for k in 1..=1_000 {
            // Asked for late, by any part of a period.
            at = slots.next_after(at).unwrap();
            assert_eq!(at, 1_000 + 700 * k);
            at += 699 * (k % 2);
        }
        assert_eq!(slots.next_after(0), Some(1_700), "none is before the first");
    }

    #[test]
    fn a_start_in_the_past_keeps_the_phase() {
        let slots = Schedule::every(Duration::from_secs(60)).starting_at(system_time(5_000)).slots(123_456).unwrap();
        assert_eq!(slots.next_after(4_999), Some(5_000));
        assert_eq!(slots.next_after(600_000), Some(605_000));
    }

    #[test]
    fn a_period_that_is_none_is_refused() {
        for period in [Duration::ZERO, Duration::from_millis(9), Duration::from_micros(10_500), Duration::MAX] {
            let refused = Schedule::every(period).slots(0).err();
            assert_eq!(refused, Some(ScheduleError::Period { period }));
        }
    }

    #[test]
    fn a_schedule_comes_back_from_its_text() {
        let every = Schedule::every(Duration::from_secs(600));
        let from = every.clone().starting_at(system_time(1_700_000_000_000));
        let mut schedules = vec![(every, "every 600000 -"), (from, "every 600000 1700000000000")];
        #[cfg(feature = "cron")]
        schedules.push((Schedule::cron("0 9 * * MON").in_zone("Europe/Berlin"), "cron Europe/Berlin - 0 9 * * MON"));
        for (schedule, text) in schedules.drain(..) {
            assert_eq!(schedule.to_string(), text);
            assert_eq!(text.parse(), Ok(schedule));
        }
        for text in ["", "every", "every 5", "every x -", "every 5 x", "cron UTC -", "lunar 5 -"] {
            assert!(matches!(text.parse::<Schedule>(), Err(ScheduleError::Unknown { .. })), "{text:?}");
        }
    }
}
