//! What becomes of a run, as a function of its result: no clock, no server, and chance is an argument.

use crate::{
    job::{Backoff, Completion, JobError, JobErrorKind, error_text},
    layer::{Declined, Delivery, Outcome},
};

/// What the decision depends on besides the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// How many earlier runs failed.
    failures: u32,
    max_attempts: u32,
    backoff: Backoff,
}

impl Attempt {
    pub(super) fn of(delivery: &Delivery) -> Self {
        Self {
            failures: delivery.context().failures(),
            max_attempts: delivery.context().max_attempts(),
            backoff: delivery.options().backoff,
        }
    }

    /// `chance` in `0.0..1.0` decides the jitter.
    pub(super) fn decide(self, result: Result<Completion, JobError>, chance: f64) -> Result<Outcome, Declined> {
        let error = match result {
            Ok(completion) => return Ok(Outcome::Done(completion)),
            Err(error) => error,
        };
        let text = || error_text(error.get_ref());
        let failures = self.failures.saturating_add(1);
        let delay = match error.kind() {
            JobErrorKind::Discard => return Ok(Outcome::Discard { why: text() }),
            JobErrorKind::Snooze(delay) => return Ok(Outcome::Snooze { delay, why: text() }),
            JobErrorKind::RateLimited(delay) => return Ok(Outcome::Hold { delay, why: text() }),
            JobErrorKind::Permanent => return Err(Declined::new(error)),
            JobErrorKind::RetryAfter(delay) => delay,
            JobErrorKind::Retry => self.backoff.delay(failures, chance),
        };
        if failures >= self.max_attempts {
            return Err(Declined::new(error));
        }
        Ok(Outcome::Retry { delay, error: text() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn attempt(failures: u32, max_attempts: u32) -> Attempt {
        let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(600));
        Attempt { failures, max_attempts, backoff }
    }

    fn failed(failures: u32, max_attempts: u32, error: JobError) -> Result<Outcome, String> {
        attempt(failures, max_attempts).decide(Err(error), 0.0).map_err(Declined::into_text)
    }

    #[test]
    fn a_success_is_done_with_its_result() {
        let completion = Completion::of(&7).unwrap();
        let outcome = attempt(3, 5).decide(Ok(completion.clone()), 0.5).unwrap();
        assert_eq!(outcome, Outcome::Done(completion));
    }

    #[test]
    fn a_failure_runs_again_after_the_backoff_until_the_attempts_are_used_up() {
        for (failures, seconds) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
            let expected = Outcome::Retry { delay: Duration::from_secs(seconds), error: "reset".into() };
            assert_eq!(failed(failures, 5, JobError::new("reset")), Ok(expected));
        }
        for failures in [4, 5, u32::MAX] {
            assert_eq!(failed(failures, 5, JobError::new("reset")), Err("reset".into()));
        }
    }

    #[test]
    fn a_job_with_one_attempt_is_never_retried() {
        assert!(failed(0, 1, JobError::new("reset")).is_err());
        assert!(failed(0, 1, JobError::retry_after(Duration::from_secs(1))).is_err());
    }

    #[test]
    fn a_wait_that_the_job_asked_for_takes_the_place_of_the_backoff() {
        let error = JobError::retry_after(Duration::from_secs(77)).because("429");
        let expected = Outcome::Retry { delay: Duration::from_secs(77), error: "429".into() };
        assert_eq!(failed(0, 5, error), Ok(expected));
    }

    #[test]
    fn a_permanent_failure_is_declined_at_once() {
        assert_eq!(failed(0, 20, JobError::permanent("no such student")), Err("no such student".into()));
    }

    #[test]
    fn a_snooze_a_limit_elsewhere_or_a_discard_is_no_failure_however_often_the_job_has_failed() {
        for failures in [0, 4, 5, u32::MAX] {
            let snooze = failed(failures, 5, JobError::snooze(Duration::from_secs(9)).because("later"));
            assert_eq!(snooze, Ok(Outcome::Snooze { delay: Duration::from_secs(9), why: "later".into() }));
            let hold = failed(failures, 5, JobError::rate_limited(Duration::from_secs(9)).because("429"));
            assert_eq!(hold, Ok(Outcome::Hold { delay: Duration::from_secs(9), why: "429".into() }));
            let discard = failed(failures, 5, JobError::discard("gone"));
            assert_eq!(discard, Ok(Outcome::Discard { why: "gone".into() }));
        }
    }
}
