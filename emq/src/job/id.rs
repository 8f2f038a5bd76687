use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The id of a job, minted by the client before anything is sent: the key that its effects are idempotent by.
///
/// It is 14 ASCII bytes, `JOB` and eleven base-62 digits of a Snowflake number (time, node, sequence). The order of the
/// text is the order of minting.
///
/// # Examples
///
/// ```
/// use emq::JobId;
///
/// let id: JobId = "JOB0JZGkP9AMvv".parse()?;
/// assert_eq!(id.number(), 264_905_529_757_794_303);
/// assert_eq!(id.to_string(), "JOB0JZGkP9AMvv");
/// # Ok::<(), emq::IdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId([u8; LEN]);

const LEN: usize = 14;
const NAMESPACE: &[u8; 3] = b"JOB";
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// 2024-01-01T00:00:00Z in Unix milliseconds: where the ids' clock starts.
const EPOCH_MS: u64 = 1_704_067_200_000;

impl JobId {
    /// The Snowflake number: milliseconds since 2024-01-01 UTC, 10 bits of node, 12 bits of sequence.
    ///
    /// ```
    /// let id: emq::JobId = "JOB0000000Hb84".parse().unwrap();
    /// assert_eq!(id.number(), 4_194_304);
    /// ```
    #[must_use]
    pub fn number(&self) -> u64 {
        // Every constructor has checked the digits and the range.
        self.0[3..].iter().fold(0, |number, byte| number * 62 + u64::from(digit(*byte).unwrap_or(0)))
    }

    /// The id as text.
    ///
    /// ```
    /// let id: emq::JobId = "JOB0000000Hb84".parse().unwrap();
    /// assert_eq!(id.as_str(), "JOB0000000Hb84");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// When the id was minted, by the clock of the client that minted it.
    ///
    /// ```
    /// let id: emq::JobId = "JOB0000000Hb84".parse().unwrap();
    /// let epoch = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_704_067_200_000);
    /// assert_eq!(id.minted_at(), epoch + std::time::Duration::from_millis(1));
    /// ```
    #[must_use]
    pub fn minted_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(EPOCH_MS + (self.number() >> 22))
    }

    /// The id of a Snowflake number below 2^63.
    ///
    /// # Errors
    ///
    /// [`IdError::Range`] if the number is 2^63 or more.
    ///
    /// ```
    /// assert_eq!(emq::JobId::from_number(4_194_304).unwrap().as_str(), "JOB0000000Hb84");
    /// ```
    pub fn from_number(number: u64) -> Result<Self, IdError> {
        if number > i64::MAX as u64 {
            return Err(IdError::Range);
        }
        Ok(Self::spell(number))
    }

    fn spell(mut number: u64) -> Self {
        let mut bytes = [b'0'; LEN];
        bytes[..3].copy_from_slice(NAMESPACE);
        for byte in bytes[3..].iter_mut().rev() {
            *byte = DIGITS[(number % 62) as usize];
            number /= 62;
        }
        Self(bytes)
    }
}

impl FromStr for JobId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (namespace, number) = parse(text.as_bytes())?;
        if namespace != *NAMESPACE {
            let found = namespace.iter().map(|byte| char::from(*byte)).collect();
            return Err(IdError::Kind { found });
        }
        Ok(Self::spell(number))
    }
}

/// Checks a branded id of any namespace, in the order the protocol gives: length, namespace, charset, range.
fn parse(text: &[u8]) -> Result<([u8; 3], u64), IdError> {
    let Some((namespace, digits)) = text.split_first_chunk::<3>().filter(|_| text.len() == LEN) else {
        return Err(IdError::Length { len: text.len() });
    };
    if !namespace.iter().all(u8::is_ascii_uppercase) {
        return Err(IdError::Namespace);
    }
    let mut number: u64 = 0;
    let mut fits = true;
    for byte in digits {
        let Some(digit) = digit(*byte) else { return Err(IdError::Charset) };
        match number.checked_mul(62).and_then(|n| n.checked_add(digit.into())) {
            Some(next) => number = next,
            None => fits = false,
        }
    }
    if !fits || number > i64::MAX as u64 {
        return Err(IdError::Range);
    }
    Ok((*namespace, number))
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'Z' => Some(byte - b'A' + 10),
        b'a'..=b'z' => Some(byte - b'a' + 36),
        _ => None,
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Why a text isn't a job id.
///
/// # Examples
///
/// ```
/// use emq::{IdError, JobId};
///
/// assert_eq!("invoice-42".parse::<JobId>(), Err(IdError::Length { len: 10 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// It hasn't 14 bytes.
    #[error("a job id has {LEN} bytes, like JOB0JZGkP9AMvv; this one has {len}")]
    Length {
        /// Its length in bytes.
        len: usize,
    },
    /// It doesn't begin with three capitals.
    #[error("a job id begins with three capitals, like JOB0JZGkP9AMvv")]
    Namespace,
    /// A digit isn't one of `0-9 A-Z a-z`.
    #[error("the digits of a job id are 0-9 A-Z a-z, like JOB0JZGkP9AMvv")]
    Charset,
    /// Its number is 2^63 or more.
    #[error("the number of a job id is below 2^63 (at most JOBAzL8n0Y58m7)")]
    Range,
    /// It is the id of something else.
    #[error("a job id begins with JOB; this is the id of a {found}")]
    Kind {
        /// The namespace it begins with.
        found: String,
    },
}

/// The last stamp given out in this process: `ms << 12 | sequence`. One for all clients, so that two clients with one
/// node number in one process can't mint the same id.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How far into a millisecond's 4 096 numbers its first one may lie, so that two processes that share a node number by
/// mistake seldom mint the same.
const FIRST_SEQUENCE_BELOW: u64 = 256;

/// An id that was just minted, as against one that a user gave: nobody else can have sent it before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minted(pub(crate) JobId);

impl Minted {
    /// Mints the next id of `node`.
    pub(crate) fn next(node: u16) -> Self {
        let ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            .saturating_sub(EPOCH_MS);
        let stamp = advance(&LAST, ms << 12 | rand::random_range(0..FIRST_SEQUENCE_BELOW));
        Self(JobId::spell(compose(stamp, node)))
    }
}

/// Takes the later of `now` and the stamp after the last: never blocks, never goes back, and runs on into the
/// following millisecond when one is full.
fn advance(last: &AtomicU64, now: u64) -> u64 {
    let next = |last: u64| now.max(last + 1);
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(before.unwrap_or_else(|last| last))
}

fn compose(stamp: u64, node: u16) -> u64 {
    let number = (stamp >> 12) << 22 | u64::from(node & 0x3ff) << 12 | stamp & 0xfff;
    number & i64::MAX as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANDED: [(&str, u64); 7] = [
        ("USR0KHTOWnGLuC", 274_557_032_793_636_864),
        ("USR0NgWEfAEJfs", 320_636_799_581_945_856),
        ("USR00000000000", 0),
        ("USRAzL8n0Y58m7", i64::MAX as u64),
        ("JOB0000000Hb84", 4_194_304),
        ("JOB09nSpDrOfNX", 132_633_958_809_772_039),
        ("JOB0JZGkP9AMvv", 264_905_529_757_794_303),
    ];

    #[test]
    fn the_protocols_vectors_decode_and_encode() {
        for (text, number) in BRANDED {
            assert_eq!(parse(text.as_bytes()).map(|(_, number)| number), Ok(number), "{text}");
            assert_eq!(&JobId::from_number(number).unwrap().as_str()[3..], &text[3..]);
        }
        let minted_at = JobId::from_number(320_636_799_581_945_856).unwrap().minted_at();
        assert_eq!(minted_at, UNIX_EPOCH + Duration::from_millis(1_780_512_970_164));
    }

    #[test]
    fn each_fault_of_an_id_has_its_own_error_in_the_protocols_order() {
        let parse = |text: &str| text.parse::<JobId>();
        assert_eq!(parse("job"), Err(IdError::Length { len: 3 }));
        assert_eq!(parse(""), Err(IdError::Length { len: 0 }));
        assert_eq!(parse("jobzzzzzzzzzzz"), Err(IdError::Namespace));
        assert_eq!(parse("JOB0000000000-"), Err(IdError::Charset));
        assert_eq!(parse("JOBzzzzzzzzzz-"), Err(IdError::Charset));
        assert_eq!(parse("JOBzzzzzzzzzzz"), Err(IdError::Range));
        assert_eq!(parse("JOBAzL8n0Y58m8"), Err(IdError::Range));
        assert_eq!(parse("USR0KHTOWnGLuC"), Err(IdError::Kind { found: "USR".into() }));
        assert_eq!(parse("JOB0000ü0000é"), Err(IdError::Length { len: 15 }));
        assert_eq!(JobId::from_number(1 << 63), Err(IdError::Range));
    }

    #[test]
    fn the_order_of_the_text_is_the_order_of_the_number() {
        let mut ids: Vec<_> = BRANDED.iter().map(|(_, n)| JobId::from_number(*n).unwrap()).collect();
        ids.sort_by_key(JobId::number);
        assert!(ids.is_sorted_by_key(ToString::to_string));
    }

    #[test]
    fn a_full_millisecond_runs_on_into_the_next_and_time_never_goes_back() {
        let last = AtomicU64::new(0);
        let now = 5 << 12 | 7;
        assert_eq!(advance(&last, now), now);
        let stamps: Vec<_> = (0..5_000).map(|_| advance(&last, now)).collect();
        assert!(stamps.is_sorted_by(|a, b| a < b));
        assert_eq!(stamps[4_999] >> 12, 6, "carried into the timestamp");
        assert_eq!(advance(&last, 1 << 12), stamps[4_999] + 1, "a clock that jumped back changes nothing");
    }

    #[test]
    fn ids_minted_from_many_threads_are_distinct() {
        let mint = || (0..5_000).map(|_| Minted::next(3).0).collect::<Vec<_>>();
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(mint)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert!(ids.iter().all(|id| id.number() >> 12 & 0x3ff == 3));
    }
}
