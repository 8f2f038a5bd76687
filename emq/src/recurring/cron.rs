//! Slots by a cron expression and the clocks of a time zone.
//!
//! The expression says which times of the wall clock are meant, and croner finds the next of them. What becomes of the
//! times that a clock skips or shows twice is decided here, so that it is the same for each expression of one kind.

use std::{cmp::Ordering, sync::LazyLock};

use croner::{
    CivilDateTime, Cron, CronDateTime, Resolution, Weekday,
    errors::CronError,
    parser::{CronParser, Year},
};
use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{TimeZone, TimeZoneDatabase},
};

use super::ScheduleError;

/// The one in the program, and not the machine's: so that all workers of one version agree, also where there is none.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// No two offsets of a zone are further apart.
const FARTHEST: SignedDuration = SignedDuration::from_hours(48);

/// A cron expression in a time zone.
#[derive(Debug)]
pub(crate) struct WallClock {
    cron: Cron,
    zone: TimeZone,
    /// Whether it means every hour, or every so many, and not certain hours of the day.
    hourly: bool,
}

impl WallClock {
    pub(super) fn new(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let unreadable = |reason: String| ScheduleError::Expression { expression: expression.to_owned(), reason };
        // croner passes over it, and `5 9, 17 * * *` would be read as one of six fields.
        if expression.split_whitespace().flat_map(|field| field.split(',')).any(str::is_empty) {
            return Err(unreadable("there is nothing before or after a comma".into()));
        }
        let parser = CronParser::builder().year(Year::Disallowed).build();
        let cron =
            parser.parse(expression).map_err(|error| unreadable(error.to_string().trim_end_matches('.').to_owned()))?;
        let zone = ZONES.get(zone).map_err(|_| ScheduleError::Zone { name: zone.to_owned() })?;
        let hourly = cron.pattern.hours.from_wildcard || cron.pattern.hours.step != 1;
        let clock = Self { cron, zone, hourly };
        if clock.next_after(0).is_none() {
            return Err(ScheduleError::Never { expression: expression.to_owned() });
        }
        Ok(clock)
    }

    /// The first slot after a moment, in Unix ms.
    pub(super) fn next_after(&self, moment: i64) -> Option<i64> {
        let second = Timestamp::from_second(moment.div_euclid(1_000) + 1).ok()?;
        self.first_from(second).map(Timestamp::as_millisecond)
    }

    /// The first slot at a moment or after it.
    ///
    /// Between two changes of the clock, wall time and time go together: so it looks in one such stretch after the other.
    fn first_from(&self, mut moment: Timestamp) -> Option<Timestamp> {
        loop {
            let offset = self.zone.to_offset(moment);
            let mut wall = offset.to_datetime(moment);
            if !self.hourly
                && let Some((change, before, after)) = self.last_change(moment)
            {
                if moment == change && self.next_match(before).is_some_and(|skipped| skipped < after) {
                    return Some(change);
                }
                // What comes a second time has had its slots.
                wall = wall.max(before);
            }
            let slot = self.next_match(wall)?;
            let end = self.zone.following(moment).next().map(|change| change.timestamp());
            let time = offset.to_timestamp(slot).ok()?;
            match end {
                Some(end) if end <= time => moment = end.max(time.checked_sub(FARTHEST).ok()?),
                _ => return Some(time),
            }
        }
    }

    /// When the clock was changed last, at a moment or before it, and what it showed then, before and after.
    fn last_change(&self, moment: Timestamp) -> Option<(Timestamp, DateTime, DateTime)> {
        let tick = SignedDuration::from_nanos(1);
        let change = self.zone.preceding(moment.checked_add(tick).ok()?).next()?.timestamp();
        let before = self.zone.to_offset(change.checked_sub(tick).ok()?);
        Some((change, before.to_datetime(change), self.zone.to_offset(change).to_datetime(change)))
    }

    /// The first time of the wall clock that the expression means, from this one on.
    fn next_match(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_next_occurrence(&Wall(wall), true).ok().map(|found| found.0)
    }
}

/// A time of the wall clock, which for croner is all there is.
#[derive(Clone)]
struct Wall(DateTime);

impl CronDateTime for Wall {
    fn to_civil(&self) -> CivilDateTime {
        let Self(wall) = self;
        CivilDateTime::new(
            croner::CivilDate::from_parts_unchecked(i32::from(wall.year()), wall.month() as u32, wall.day() as u32),
            croner::CivilTime::from_parts_unchecked(wall.hour() as u32, wall.minute() as u32, wall.second() as u32),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().to_sunday_zero_offset() as u32)
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let [month, day, hour, minute, second] =
            [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()].map(|part| part as i8);
        let wall = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| CronError::InvalidDate)?;
        Ok(Resolution::Single(Self(wall)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
