use std::time::Duration;

/// Waits are kept in whole milliseconds, and a sum of one with a time of day must stay far from overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Reads a duration such as `30s` or `1h 30m`, or says in one sentence what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a duration: write numbers with units, like \"500ms\", \"30s\" or \"1h 30m\"")
    })?;
    if duration.is_zero() {
        return Err(format!("{text:?} is too short: a duration here is at least \"1ms\""));
    }
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err(format!("{text:?} is too fine: a duration here is a whole number of milliseconds, like \"1ms\""));
    }
    if duration > LONGEST {
        return Err(format!("{text:?} is too long: a duration here is at most 100 years"));
    }
    Ok(duration)
}

/// The milliseconds of a duration that [`parse`] has read.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, millis) in
            [("30s", 30_000), ("10m", 600_000), ("1h 30m", 5_400_000), ("1ms", 1), ("1day", 86_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_whole_number_of_milliseconds_above_zero_is_refused() {
        for text in [
            "",
            "30",
            "s",
            "soon",
            "-1s",
            "0s",
            "0ms",
            "1us",
            "1ms 1ns",
            "1s 500us",
            "200years",
            "1e9s",
            "18446744073709551616s",
            "584542046091years",
            "1m\0",
            "１s",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
