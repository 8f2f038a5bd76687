//! What the transitions that settle a claimed job answer.

use fred::types::Value;

use super::{
    error::CallError,
    reply::{unexpected, word},
};

/// What became of an attempt to settle a job.
///
/// # Examples
///
/// ```
/// use emq::Settled;
///
/// assert!(Settled::Accepted.is_settled());
/// assert!(Settled::Repeated.is_settled());
/// assert!(!Settled::Stale.is_settled());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settled {
    /// It was written.
    Accepted,
    /// The same had been written before under this token, by an earlier try of this call; nothing was written again.
    Repeated,
    /// Another worker holds the job, or it was settled in another way; nothing was written.
    Stale,
    /// There is no such job any more; nothing was written.
    Gone,
    /// Somebody had cancelled the job, and so it is gone, whatever was to become of it. Only a completion comes before a
    /// cancellation that the job's holder hasn't carried out.
    Cancelled,
}

impl Settled {
    /// Whether the job stands now as the call wanted it.
    ///
    /// ```
    /// assert!(!emq::Settled::Gone.is_settled());
    /// ```
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Accepted | Self::Repeated)
    }

    pub(super) fn read(call: &'static str, value: &Value) -> Result<Self, CallError> {
        match word(call, value)?.as_str() {
            "OK" => Ok(Self::Accepted),
            "DONE" => Ok(Self::Repeated),
            "STALE" => Ok(Self::Stale),
            "GONE" => Ok(Self::Gone),
            "CANCELLED" => Ok(Self::Cancelled),
            _ => Err(unexpected(call, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_its_meaning_and_no_other_word_has_one() {
        use Settled::{Accepted, Gone, Repeated, Stale};
        for (word, settled) in [("OK", Accepted), ("DONE", Repeated), ("STALE", Stale), ("GONE", Gone)] {
            assert_eq!(Settled::read("retry", &word.into()).unwrap(), settled);
            assert_eq!(settled.is_settled(), ["OK", "DONE"].contains(&word));
        }
        for odd in ["", "ok", "OK "] {
            assert!(matches!(
                Settled::read("retry", &odd.into()),
                Err(CallError::UnexpectedReply { call: "retry", .. })
            ));
        }
        assert!(Settled::read("retry", &Value::Null).is_err());
    }
}
