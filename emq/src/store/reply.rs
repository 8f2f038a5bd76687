//! Reading replies: every field checked, and whatever doesn't fit is a [`CallError::UnexpectedReply`].

use bytes::Bytes;
use fred::types::Value;

use super::error::CallError;
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

    fn next(&mut self) -> Result<Value, CallError> {
        self.parts
            .next()
            .ok_or_else(|| CallError::UnexpectedReply { call: self.call, detail: "the reply is too short".into() })
    }

    pub(super) fn list_part(&mut self) -> Result<Self, CallError> {
        let part = self.next()?;
        Self::list(self.call, part)
    }

    pub(super) fn integer(&mut self) -> Result<i64, CallError> {
        let part = self.next()?;
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
        let part = self.next()?;
        part.as_string().ok_or_else(|| unexpected(self.call, &part))
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, CallError> {
        self.optional_bytes()?.ok_or_else(|| unexpected(self.call, &Value::Null))
    }

    pub(super) fn optional_bytes(&mut self) -> Result<Option<Bytes>, CallError> {
        match self.next()? {
            Value::Null => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            Value::String(text) => Ok(Some(text.into_inner())),
            other => Err(unexpected(self.call, &other)),
        }
    }

    /// A field that somebody may have tampered with: `None` unless it is a number, or what else is read from a text.
    pub(super) fn lenient<T: std::str::FromStr>(&mut self) -> Result<Option<T>, CallError> {
        let part = self.next()?;
        Ok(part.as_str().and_then(|text| text.parse().ok()))
    }

    /// The ids of a list; one that isn't a job's can't be named, and is left out.
    pub(super) fn ids(&mut self) -> Result<Vec<JobId>, CallError> {
        let list = self.list_part()?;
        Ok(list.parts.filter_map(|part| part.as_str()?.parse().ok()).collect())
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
    let mut detail = format!("{value:?}");
    if detail.len() > 200 {
        let end = (0..=200).rev().find(|at| detail.is_char_boundary(*at)).unwrap_or(0);
        detail.truncate(end);
    }
    CallError::UnexpectedReply { call, detail }
}
