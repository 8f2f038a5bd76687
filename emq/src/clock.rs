//! Arithmetic of the clock that can't fail: durations come from users, and some of them mean "never".

use std::time::Duration;

use tokio::time::Instant;

/// A moment so far away that it never comes; tokio's own timers take it as such.
pub(crate) const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// `wait` after `from`, or never.
pub(crate) fn later(from: Instant, wait: Duration) -> Instant {
    from.checked_add(wait).unwrap_or_else(|| from + NEVER)
}
