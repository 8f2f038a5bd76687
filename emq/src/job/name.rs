use std::{fmt, sync::Arc};

/// The most bytes in the name of a queue, a lane or a recurring job: 128.
pub const MAX_NAME_LEN: usize = 128;

/// The name of a queue: 1 to 128 of `A-Z a-z 0-9 . _ -`, and not `emq`.
///
/// # Examples
///
/// ```
/// use emq::QueueName;
///
/// let queue: QueueName = "enrollments".parse()?;
/// assert_eq!(queue.as_str(), "enrollments");
/// assert!("has space".parse::<QueueName>().is_err());
/// # Ok::<(), emq::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks and takes a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name is empty, too long, `emq`, or has another character.
    ///
    /// ```
    /// assert!(emq::QueueName::new("mail").is_ok());
    /// assert!(emq::QueueName::new("").is_err());
    /// ```
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        check(name.as_ref()).map(|name| Self(name.into()))
    }

    pub(crate) fn for_test() -> Self {
        Self("test".into())
    }

    /// The name as text.
    ///
    /// ```
    /// assert_eq!(emq::QueueName::new("mail").unwrap().as_str(), "mail");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for QueueName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

/// The name of a lane: that of a group of jobs, such as a tenant. Made of the same characters as a [`QueueName`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneName(Arc<str>);

impl LaneName {
    pub(crate) fn new(name: &str) -> Result<Self, NameError> {
        check(name).map(|name| Self(name.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As an argument of a script: empty for none.
    pub(crate) fn on_wire(lane: Option<&Self>) -> String {
        lane.map_or_else(String::new, |lane| lane.0.as_ref().to_owned())
    }
}

fn check(name: &str) -> Result<&str, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_NAME_LEN {
        return Err(NameError::TooLong { len: name.len() });
    }
    if let Some(found) = name.chars().find(|c| !is_plain(*c)) {
        return Err(NameError::Character { name: name.into(), found });
    }
    if name == "emq" {
        return Err(NameError::Reserved);
    }
    Ok(name)
}

/// Why a text can't be the name of a queue, a lane or a recurring job.
///
/// # Examples
///
/// ```
/// use emq::{NameError, QueueName};
///
/// assert_eq!(QueueName::new("emq"), Err(NameError::Reserved));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It has no characters.
    #[error("the name of a queue, a lane or a recurring job can't be empty")]
    Empty,
    /// It has more than 128 bytes.
    #[error("the name of a queue, a lane or a recurring job has at most {MAX_NAME_LEN} bytes, this one has {len}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// It has a character that isn't allowed.
    #[error("the name of a queue, a lane or a recurring job is made of A-Z a-z 0-9 . _ - but {name:?} has {found:?}")]
    Character {
        /// The name.
        name: String,
        /// The first character that isn't allowed.
        found: char,
    },
    /// It is `emq`, which holds what all queues share.
    #[error("\"emq\" can't be the name of a queue, a lane or a recurring job: it holds what all queues share")]
    Reserved,
}

pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_queue_name_is_refused_with_its_reason() {
        assert_eq!(QueueName::new(""), Err(NameError::Empty));
        assert_eq!(QueueName::new("emq"), Err(NameError::Reserved));
        assert_eq!(QueueName::new("a".repeat(129)), Err(NameError::TooLong { len: 129 }));
        for bad in ["a b", "a:b", "{a}", "a*", "a\0", "a\r\n", "schüler", "🦀", "a/b"] {
            assert!(matches!(QueueName::new(bad), Err(NameError::Character { .. })), "{bad:?}");
        }
        assert!(QueueName::new("a".repeat(128)).is_ok());
        assert!(QueueName::new("meta.Lock_1-x").is_ok());
    }
}
