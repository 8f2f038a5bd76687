//! Reading replies: every field checked, and whatever doesn't fit is a [`CallError::UnexpectedReply`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fred::types::Value;

use super::{error::CallError, script::MAX_WAIT};
use crate::job::JobId;

/// The parts of a reply, taken one after the other.
pub(super) struct Reply {
    call: &'static str,
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    /// A reply that has to be a list.
    pub(super) fn list(call: &'static str, value: Value) -> Result<Self, CallError> {
        match value {
            Value::Array(parts) => Ok(Self { call, parts: parts.into_iter() }),
            other => Err(unexpected(call, &other)),
        }
    }

    pub(super) fn call(&self) -> &'static str {
        self.call
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn part(&mut self) -> Result<Value, CallError> {
        self.parts.next().ok_or_else(|| unlike(self.call, "the reply is too short"))
    }

    pub(super) fn list_part(&mut self) -> Result<Self, CallError> {
        let part = self.part()?;
        Self::list(self.call, part)
    }

    pub(super) fn integer(&mut self) -> Result<i64, CallError> {
        let part = self.part()?;
        integer(&part).ok_or_else(|| unexpected(self.call, &part))
    }

    /// A number that is never negative.
    pub(super) fn count(&mut self) -> Result<u64, CallError> {
        let n = self.integer()?;
        u64::try_from(n).map_err(|_| unexpected(self.call, &Value::Integer(n)))
    }

    /// Milliseconds, or -1 for none.
    pub(super) fn wait(&mut self) -> Result<Option<std::time::Duration>, CallError> {
        Ok(u64::try_from(self.integer()?).ok().map(std::time::Duration::from_millis))
    }

    pub(super) fn text(&mut self) -> Result<String, CallError> {
        let part = self.part()?;
        part.as_string().ok_or_else(|| unexpected(self.call, &part))
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, CallError> {
        self.optional_bytes()?.ok_or_else(|| unexpected(self.call, &Value::Null))
    }

    pub(super) fn optional_bytes(&mut self) -> Result<Option<Bytes>, CallError> {
        match self.part()? {
            Value::Null => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            Value::String(text) => Ok(Some(text.into_inner())),
            other => Err(unexpected(self.call, &other)),
        }
    }

    /// A field that somebody may have tampered with: `None` unless it is a number.
    pub(super) fn lenient_number<T: std::str::FromStr>(&mut self) -> Result<Option<T>, CallError> {
        let part = self.part()?;
        Ok(part.as_str().and_then(|text| text.parse().ok()))
    }

    /// A time in Unix ms that somebody may have tampered with: `None` unless it is a number.
    pub(super) fn lenient_time(&mut self) -> Result<Option<SystemTime>, CallError> {
        let ms = self.lenient_number::<f64>()?;
        Ok(ms.map(|ms| UNIX_EPOCH + Duration::from_millis(ms.max(0.0) as u64).min(MAX_WAIT * 2)))
    }

    /// A field that somebody may have tampered with, as text: what is no text in it is replaced.
    pub(super) fn lenient_text(&mut self) -> Result<Option<String>, CallError> {
        Ok(self.optional_bytes()?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// An id that somebody may have put there: `None` unless it is a job's, for another can't be named.
    pub(super) fn lenient_id(&mut self) -> Result<Option<JobId>, CallError> {
        let part = self.part()?;
        Ok(part.as_str().and_then(|text| text.parse().ok()))
    }

    /// The ids of a list; one that isn't a job's is left out.
    pub(super) fn ids(&mut self) -> Result<Vec<JobId>, CallError> {
        let mut list = self.list_part()?;
        let ids = (0..list.len()).map(|_| list.lenient_id());
        Ok(ids.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// The word that a reply consists of.
pub(super) fn word(call: &'static str, value: &Value) -> Result<String, CallError> {
    value.as_string().ok_or_else(|| unexpected(call, value))
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(n) => Some(*n),
        other => other.as_str()?.parse().ok(),
    }
}

pub(super) fn unexpected(call: &'static str, value: &Value) -> CallError {
    unlike(call, &format!("{value:?}"))
}

/// The error that says what is wrong with an answer, of which as much is shown as a person reads.
pub(super) fn unlike(call: &'static str, detail: &str) -> CallError {
    let end = (0..=detail.len().min(200)).rev().find(|at| detail.is_char_boundary(*at)).unwrap_or(0);
    CallError::UnexpectedReply { call, detail: detail[..end].to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reply(part: impl Into<Value>) -> Reply {
        Reply::list("claim", Value::Array(vec![part.into()])).unwrap()
    }

    fn list(parts: &[&str]) -> Value {
        Value::Array(parts.iter().map(|part| Value::from(*part)).collect())
    }

    #[test]
    fn a_part_is_read_as_what_it_is_and_as_nothing_else() {
        assert_eq!(reply(7).integer().unwrap(), 7);
        assert_eq!(reply("-7").integer().unwrap(), -7, "a number that a script has kept as a text");
        assert_eq!(reply(7).count().unwrap(), 7);
        assert_eq!(reply("x").text().unwrap(), "x");
        assert_eq!(reply("x").bytes().unwrap(), "x");
        assert_eq!(reply(Value::Bytes(Bytes::from_static(b"\xff"))).bytes().unwrap(), &b"\xff"[..]);
        assert_eq!(reply(Value::Null).optional_bytes().unwrap(), None);
        assert_eq!(reply(list(&["a", "b"])).list_part().unwrap().len(), 2);
        for wrong in [Value::Null, "seven".into(), list(&["7"])] {
            assert!(reply(wrong.clone()).integer().is_err(), "{wrong:?}");
        }
        assert!(reply(-1).count().is_err());
        for wrong in [Value::Null, Value::Integer(7), list(&[])] {
            assert!(reply(wrong.clone()).bytes().is_err(), "{wrong:?}");
        }
        assert!(reply(Value::Null).text().is_err());
        assert!(reply("a").list_part().is_err());
        assert!(Reply::list("claim", "a".into()).is_err());
        let mut reply = reply("a");
        reply.text().unwrap();
        let error = reply.text().unwrap_err().to_string();
        assert!(error.contains("`claim`") && error.contains("too short"), "{error}");
    }

    #[test]
    fn a_wait_below_zero_is_none() {
        assert_eq!(reply(0).wait().unwrap(), Some(Duration::ZERO));
        assert_eq!(reply(1_500).wait().unwrap(), Some(Duration::from_millis(1_500)));
        assert_eq!(reply(-1).wait().unwrap(), None);
    }

    #[test]
    fn what_others_may_have_written_is_left_out_unless_it_fits() {
        assert_eq!(reply("7").lenient_number::<u32>().unwrap(), Some(7));
        for odd in ["", "-1", "x", "4294967296"] {
            assert_eq!(reply(odd).lenient_number::<u32>().unwrap(), None, "{odd:?}");
        }
        let id: JobId = "JOB0JZGkP9AMvv".parse().unwrap();
        assert_eq!(reply(id.as_str()).lenient_id().unwrap(), Some(id));
        assert_eq!(reply(Value::Bytes(Bytes::from_static(b"\xff"))).lenient_id().unwrap(), None);
        assert_eq!(reply(list(&["x", id.as_str(), ""])).ids().unwrap(), [id]);
    }

    #[test]
    fn as_much_of_an_answer_is_shown_as_a_person_reads() {
        let shown = |text: &str| match unlike("get", text) {
            CallError::UnexpectedReply { call: "get", detail } => detail,
            other => panic!("{other:?}"),
        };
        assert_eq!(shown("short"), "short");
        assert_eq!(shown(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(shown(&"x".repeat(1 << 20)), "x".repeat(200));
        assert_eq!(shown(&format!("{}é", "x".repeat(199))), "x".repeat(199), "no letter is cut in two");
        let CallError::UnexpectedReply { detail, .. } = unexpected("get", &7.into()) else { panic!() };
        assert!(detail.contains('7'), "{detail}");
    }
}
