//! How often a job runs on the days on which the clocks change. The table is the documented count.

use std::time::{Duration, Instant};

use super::*;

fn clock(expression: &str, zone: &str) -> WallClock {
    WallClock::new(expression, zone).unwrap()
}

/// A moment in Unix ms, of a text such as `2026-03-29T01:00Z`.
fn at(text: &str) -> i64 {
    let text = text.strip_suffix('Z').unwrap();
    let wall: DateTime = text.parse().unwrap();
    TimeZone::UTC.to_timestamp(wall).unwrap().as_millisecond()
}

/// The slots on one day of the wall clock, as UTC: `24T01:30`.
fn slots_on(clock: &WallClock, day: &str) -> Vec<String> {
    let day: jiff::civil::Date = day.parse().unwrap();
    let midnight = |day: jiff::civil::Date| {
        clock.zone.to_ambiguous_timestamp(day.to_datetime(jiff::civil::Time::midnight())).compatible().unwrap()
    };
    let (begin, end) = (midnight(day).as_millisecond(), midnight(day.tomorrow().unwrap()).as_millisecond());
    let mut slots = Vec::new();
    let mut last = begin - 1;
    while let Some(slot) = clock.next_after(last).filter(|slot| *slot < end) {
        assert!(slot > last, "it goes forward");
        let wall = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(slot).unwrap());
        slots.push(format!("{:02}T{:02}:{:02}", wall.day(), wall.hour(), wall.minute()));
        last = slot;
        assert!(slots.len() <= 100_000, "it comes to the end of the day");
    }
    slots
}

#[test]
fn each_schedule_has_its_documented_count_on_the_days_of_both_changes() {
    let daily = "30 2 * * *";
    let quarters = "*/15 * * * *";
    let of_the_second_hour = "*/15 2 * * *";
    // The zone, the day; how often per day: 02:30 daily, hourly, each quarter, each quarter of the hour from 2 to 3, at
    // 1 and 2, every other hour.
    #[rustfmt::skip]
    let table = [
        ("Europe/Berlin",       "2026-03-29", "02:00 to 03:00", [1, 23, 92, 1, 2, 11]),
        ("Europe/Berlin",       "2026-10-25", "03:00 to 02:00", [1, 25, 100, 4, 2, 13]),
        ("America/New_York",    "2026-03-08", "02:00 to 03:00", [1, 23, 92, 1, 2, 11]),
        ("America/New_York",    "2026-11-01", "02:00 to 01:00", [1, 25, 100, 4, 2, 12]),
        ("Australia/Lord_Howe", "2026-10-04", "02:00 to 02:30", [1, 23, 94, 2, 2, 11]),
        ("Australia/Lord_Howe", "2026-04-05", "02:00 to 01:30", [1, 24, 98, 4, 2, 12]),
        ("Africa/Casablanca",   "2026-02-15", "03:00 to 02:00", [1, 25, 100, 4, 2, 13]),
        ("Africa/Casablanca",   "2026-03-22", "02:00 to 03:00", [1, 23, 92, 1, 2, 11]),
        ("Pacific/Kiritimati",  "2026-03-29", "no change",      [1, 24, 96, 4, 2, 12]),
        ("UTC",                 "2026-03-29", "no change",      [1, 24, 96, 4, 2, 12]),
    ];
    for (zone, day, change, counts) in table {
        let expressions = [daily, "0 * * * *", quarters, of_the_second_hour, "0 1,2 * * *", "0 */2 * * *"];
        let found = expressions.map(|expression| slots_on(&clock(expression, zone), day).len());
        assert_eq!(found, counts, "{zone} on {day}, {change}: {expressions:?}");
    }
}

#[test]
fn a_time_that_the_clock_skips_runs_at_the_moment_of_the_change() {
    assert_eq!(slots_on(&clock("30 2 * * *", "Europe/Berlin"), "2026-03-29"), ["29T01:00"]);
    assert_eq!(slots_on(&clock("30 2 * * *", "America/New_York"), "2026-03-08"), ["08T07:00"]);
    assert_eq!(slots_on(&clock("15 2 * * *", "Australia/Lord_Howe"), "2026-10-04"), ["03T15:30"]);
    // What is due then anyway runs once.
    assert_eq!(slots_on(&clock("30 2,3 * * *", "Europe/Berlin"), "2026-03-29"), ["29T01:00", "29T01:30"]);
    assert_eq!(slots_on(&clock("0 2,3 * * *", "Europe/Berlin"), "2026-03-29"), ["29T01:00"]);
}

#[test]
fn a_time_that_comes_twice_runs_the_first_time() {
    assert_eq!(slots_on(&clock("30 2 * * *", "Europe/Berlin"), "2026-10-25"), ["25T00:30"]);
    assert_eq!(slots_on(&clock("30 1 * * *", "America/New_York"), "2026-11-01"), ["01T05:30"]);
    assert_eq!(slots_on(&clock("45 1 * * *", "Australia/Lord_Howe"), "2026-04-05"), ["04T14:45"]);
    // Also when somebody looks only when it is there for the second time.
    let second = at("2026-10-25T01:15Z");
    assert_eq!(clock("30 2 * * *", "Europe/Berlin").next_after(second), Some(at("2026-10-26T01:30Z")));
}

#[test]
fn an_hourly_job_runs_in_each_hour_that_there_is() {
    let hours = slots_on(&clock("0 * * * *", "Europe/Berlin"), "2026-10-25");
    assert_eq!(hours[..5], ["24T22:00", "24T23:00", "25T00:00", "25T01:00", "25T02:00"]);
    let hours = slots_on(&clock("0 * * * *", "Europe/Berlin"), "2026-03-29");
    assert_eq!(hours[..4], ["28T23:00", "29T00:00", "29T01:00", "29T02:00"]);
}

#[test]
fn from_half_hour_to_half_hour_it_is_half_an_hour_all_year() {
    for zone in ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"] {
        let clock = clock("*/30 * * * *", zone);
        let mut last = at("2026-01-01T00:00Z");
        while last < at("2027-01-01T00:00Z") {
            let next = clock.next_after(last).unwrap();
            assert_eq!(next - last, 30 * 60_000, "{zone} after {last}");
            last = next;
        }
    }
}

#[test]
fn a_daily_job_runs_once_a_day_all_year() {
    for zone in ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"] {
        for expression in ["30 2 * * *", "45 1 * * *", "0 0 * * *", "59 59 23 * * *"] {
            let clock = clock(expression, zone);
            let mut last = at("2025-01-01T00:00Z");
            let mut count = 0;
            while let Some(slot) = clock.next_after(last).filter(|slot| *slot < at("2026-01-01T00:00Z")) {
                (last, count) = (slot, count + 1);
            }
            assert_eq!(count, 365, "{expression} in {zone}");
        }
    }
}

#[test]
fn the_day_that_samoa_left_out_is_made_up_for_at_its_end() {
    let clock = clock("0 12 * * *", "Pacific/Apia");
    let slots = ["2011-12-29T22:00Z", "2011-12-30T10:00Z", "2011-12-30T22:00Z"].map(at);
    assert_eq!(clock.next_after(slots[0]), Some(slots[1]), "at midnight, when the 31st began");
    assert_eq!(clock.next_after(slots[1]), Some(slots[2]));
}

#[test]
fn a_slot_may_be_the_last_second_before_midnight() {
    let clock = clock("59 59 23 31 12 *", "UTC");
    assert_eq!(clock.next_after(at("2026-12-31T23:59:58Z")), Some(at("2026-12-31T23:59:59Z")));
    assert_eq!(clock.next_after(at("2026-12-31T23:59:59Z")), Some(at("2027-12-31T23:59:59Z")));
    assert_eq!(clock.next_after(at("2026-12-31T23:59:59Z") - 1), Some(at("2026-12-31T23:59:59Z")));
}

#[test]
fn a_rare_date_is_found_and_quickly() {
    let started = Instant::now();
    let leap = clock("0 12 29 2 *", "Europe/Berlin");
    assert_eq!(leap.next_after(at("2096-03-01T00:00Z")), Some(at("2104-02-29T12:00Z") - 60 * 60_000));
    clock("0 0 L 2 *", "Europe/Berlin");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_date_that_there_never_is_is_refused_and_quickly() {
    let started = Instant::now();
    for expression in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 31 FEB *"] {
        let refused = WallClock::new(expression, "Europe/Berlin").err();
        assert_eq!(refused, Some(ScheduleError::Never { expression: expression.into() }));
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn what_is_no_expression_or_no_zone_is_refused_with_its_reason() {
    for expression in
        ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5 9, 17 * * *"]
    {
        let refused = WallClock::new(expression, "UTC").err();
        assert!(matches!(refused, Some(ScheduleError::Expression { .. })), "{expression:?}: {refused:?}");
    }
    // A year would make an end of it.
    assert!(WallClock::new("0 0 0 1 1 * 2030", "UTC").is_err());
    let refused = WallClock::new("0 0 * * *", "Europe/Bonn").err();
    assert_eq!(refused, Some(ScheduleError::Zone { name: "Europe/Bonn".into() }));
}

#[test]
fn several_hours_are_several_slots() {
    assert_eq!(slots_on(&clock("0 9,17 * * *", "UTC"), "2026-05-05"), ["05T09:00", "05T17:00"]);
}
