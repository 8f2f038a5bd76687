use std::{fmt, time::Duration};

use super::script::MAX_WAIT;

/// How many jobs may start in some time: `max` per `period`, evenly, and up to `burst` of them at once.
///
/// The bound holds for every window, wherever it begins: in a window as long as one period, no more than
/// `max + burst - 1` jobs start; in one of any length, no more than `length / period * max`, rounded up, `+ burst - 1`.
/// So without a burst it is `max`, and jobs are `period / max` apart. The algorithm is the generic cell rate algorithm
/// (GCRA), a leaky bucket whose whole state is one time.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::Rate;
///
/// // One every 20 ms.
/// let even = Rate::per(50, Duration::from_secs(1));
/// // 50 a second on average, of which 10 may start at once after a quiet time.
/// let bursts = Rate::per(50, Duration::from_secs(1)).burst(10);
/// assert_eq!(bursts.to_string(), "50 per 1s, bursts of 10");
/// # let _ = even;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    max: u32,
    period_ms: u64,
    burst: u32,
}

impl Rate {
    /// `max` jobs per `period`, one at a time. A `max` of 0 counts as 1; the period is rounded up to whole ms, at least 1.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(emq::Rate::per(100, Duration::from_secs(60)).max(), 100);
    /// ```
    #[must_use]
    pub fn per(max: u32, period: Duration) -> Self {
        let period_ms = period.min(MAX_WAIT).as_nanos().div_ceil(1_000_000).max(1) as u64;
        Self { max: max.max(1), period_ms, burst: 1 }
    }

    /// How many may start at once after a quiet time; 1 by default, and 0 counts as 1.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(emq::Rate::per(100, Duration::from_secs(60)).burst(20).bursts(), 20);
    /// ```
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst.max(1);
        self
    }

    /// How many jobs per period.
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(emq::Rate::per(100, Duration::from_secs(60)).max(), 100);
    /// ```
    #[must_use]
    pub fn max(&self) -> u32 {
        self.max
    }

    /// The period.
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(emq::Rate::per(100, Duration::from_secs(60)).period(), Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// How many may start at once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(emq::Rate::per(100, Duration::from_secs(60)).bursts(), 1);
    /// ```
    #[must_use]
    pub fn bursts(&self) -> u32 {
        self.burst
    }

    /// As it stands on the server, where what is spent of it follows.
    pub(super) fn on_wire(self) -> String {
        format!("{} {} {}", self.max, self.period_ms, self.burst)
    }

    /// What stands on the server; `None` for what the claim doesn't take for a rate, either.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let max = words.next()?.parse().ok().filter(|max| *max > 0)?;
        let period_ms = words.next()?.parse().ok().filter(|ms| *ms > 0)?;
        let burst = words.next()?.parse().ok().filter(|burst| *burst > 0)?;
        Some(Self { max, period_ms, burst })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {:?}", self.max, self.period())?;
        if self.burst > 1 { write!(f, ", bursts of {}", self.burst) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_whatever_is_spent() {
        let rate = Rate::per(50, Duration::from_micros(1_500)).burst(7);
        assert_eq!(rate.on_wire(), "50 2 7");
        assert_eq!(Rate::read("50 2 7"), Some(rate));
        assert_eq!(Rate::read("50 2 7 1700000000000.125"), Some(rate));
        for bad in ["", "50", "0 2 7", "50 0 7", "50 2 0", "50 2 x", "-1 2 3"] {
            assert_eq!(Rate::read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_rate_lets_at_least_something_start() {
        assert_eq!(Rate::per(0, Duration::ZERO).burst(0).on_wire(), "1 1 1");
        assert_eq!(Rate::per(1, Duration::MAX).period(), MAX_WAIT);
    }
}
