use std::time::Duration;

/// How long a failed job waits before it runs again.
///
/// The wait is never longer than the cap, never negative, and defined for every number of failures up to `u32::MAX`.
/// Jitter only ever shortens it: with a jitter of 0.2 the wait lies between 80 % and 100 % of the full one, so that jobs
/// that failed together don't come back together.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use emq::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(600)).jitter(0.0);
/// assert_eq!(backoff.delay(1, 0.5), Duration::from_secs(1));
/// assert_eq!(backoff.delay(4, 0.5), Duration::from_secs(8));
/// assert_eq!(backoff.delay(u32::MAX, 0.5), Duration::from_secs(600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    doubles: bool,
    jitter: f64,
}

impl Backoff {
    /// The jitter of a backoff that doesn't state its own: 0.2.
    pub const DEFAULT_JITTER: f64 = 0.2;

    /// The same wait after each failure.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::Backoff;
    ///
    /// let backoff = Backoff::fixed(Duration::from_secs(5)).jitter(0.0);
    /// assert_eq!(backoff.delay(1, 0.0), backoff.delay(9, 0.0));
    /// ```
    #[must_use]
    pub const fn fixed(delay: Duration) -> Self {
        Self { first: delay, max: delay, doubles: false, jitter: Self::DEFAULT_JITTER }
    }

    /// `first` after the first failure, then twice as long after each further one, up to `max`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::Backoff;
    ///
    /// let backoff = Backoff::exponential(Duration::from_millis(250), Duration::from_secs(60));
    /// assert!(backoff.delay(3, 0.0) <= Duration::from_secs(1));
    /// ```
    #[must_use]
    pub const fn exponential(first: Duration, max: Duration) -> Self {
        Self { first, max, doubles: true, jitter: Self::DEFAULT_JITTER }
    }

    /// Sets the share of the wait that chance may take away, 0.0 to 1.0; values outside are taken as the nearest bound.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::Backoff;
    ///
    /// let backoff = Backoff::fixed(Duration::from_secs(10)).jitter(0.5);
    /// assert_eq!(backoff.delay(1, 1.0), Duration::from_secs(5));
    /// ```
    #[must_use]
    pub const fn jitter(mut self, share: f64) -> Self {
        // Written so that NaN becomes 0.
        self.jitter = if share > 0.0 { if share < 1.0 { share } else { 1.0 } } else { 0.0 };
        self
    }

    /// The wait after the `failures`-th failure (counted from 1), with `chance` in `0.0..=1.0` deciding the jitter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use emq::Backoff;
    ///
    /// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(600));
    /// assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(1));
    /// ```
    #[must_use]
    pub fn delay(&self, failures: u32, chance: f64) -> Duration {
        let full = if self.doubles {
            // Doubled 127 times, a nanosecond exceeds every cap: a larger exponent can only mean "the cap".
            2_u128
                .checked_pow(failures.saturating_sub(1))
                .and_then(|factor| self.first.as_nanos().checked_mul(factor))
                .filter(|nanos| *nanos < self.max.as_nanos())
                .map_or(self.max, duration)
        } else {
            self.first
        };
        // A zero first wait stays zero, also where the power above would overflow.
        if self.first.is_zero() {
            return Duration::ZERO;
        }
        let chance = if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 0.0 };
        let kept = 1.0 - self.jitter * chance;
        Duration::try_from_secs_f64(full.as_secs_f64() * kept).unwrap_or(full).min(full)
    }
}

/// A duration from its nanoseconds, of which there are no more than a duration can have.
fn duration(nanos: u128) -> Duration {
    const PER_SECOND: u128 = 1_000_000_000;
    Duration::new((nanos / PER_SECOND) as u64, (nanos % PER_SECOND) as u32)
}

impl Default for Backoff {
    /// Exponential, from 1 s up to 1 day, jitter 0.2. With 20 attempts that is about three days of trying: time for a
    /// person to ship a fix.
    fn default() -> Self {
        DEFAULT_BACKOFF
    }
}

pub(super) const DEFAULT_BACKOFF: Backoff =
    Backoff::exponential(Duration::from_secs(1), Duration::from_secs(24 * 60 * 60));

#[cfg(test)]
mod tests {
    use super::*;

    const EXTREMES: [u32; 9] = [0, 1, 2, 31, 32, 33, 64, 310, u32::MAX];

    #[test]
    fn a_wait_is_capped_and_never_negative_for_any_number_of_failures() {
        for first in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1), Duration::MAX] {
            for max in [Duration::ZERO, Duration::from_secs(600), Duration::MAX] {
                let backoff = Backoff::exponential(first, max);
                for failures in EXTREMES {
                    for chance in [0.0, 0.3, 1.0, -1.0, f64::NAN, f64::INFINITY] {
                        assert!(backoff.delay(failures, chance) <= max, "{first:?} {max:?} {failures} {chance}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_jitter_the_waits_never_shrink() {
        let backoff = Backoff::default().jitter(0.0);
        let waits: Vec<_> = (1..10_000).map(|failures| backoff.delay(failures, 0.7)).collect();
        assert!(waits.is_sorted());
        assert_eq!(waits[0], Duration::from_secs(1));
        assert_eq!(waits[9_998], Duration::from_secs(86_400));
    }

    #[test]
    fn a_short_wait_doubles_all_the_way_to_a_long_cap() {
        let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        for first in [Duration::from_nanos(1), Duration::from_millis(1)] {
            let backoff = Backoff::exponential(first, century).jitter(0.0);
            let waits: Vec<_> = (1..100).map(|failures| backoff.delay(failures, 0.0)).collect();
            assert_eq!(waits[98], century);
            assert!(waits.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(century)), "{waits:?}");
        }
    }

    #[test]
    fn jitter_takes_away_at_most_its_share() {
        let backoff = Backoff::fixed(Duration::from_secs(100)).jitter(0.2);
        assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(100));
        assert_eq!(backoff.delay(1, 1.0), Duration::from_secs(80));
    }

    #[test]
    fn a_jitter_out_of_range_becomes_the_nearest_bound() {
        let delay = |share| Backoff::fixed(Duration::from_secs(10)).jitter(share).delay(1, 1.0);
        assert_eq!(delay(7.0), Duration::ZERO);
        assert_eq!(delay(-7.0), Duration::from_secs(10));
        assert_eq!(delay(f64::NAN), Duration::from_secs(10));
    }
}
