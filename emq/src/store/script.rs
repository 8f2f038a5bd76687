//! A transition's Lua text with its number of keys and arguments.
//!
//! Scripts and not a function library: a script is addressed by its content, so during a rolling deploy two versions of
//! a transition live side by side and each worker runs its own. A library is addressed by its name, and loading a new
//! one would change what running workers do.

use std::sync::LazyLock;

use bytes::Bytes;
use fred::types::{Key, Value};
use sha1::{Digest as _, Sha1};

use crate::job::{BoxError, error_text};

/// A script of `K` keys and at least `A` arguments.
pub(super) struct Script<const K: usize, const A: usize> {
    name: &'static str,
    source: &'static str,
    hash: LazyLock<String, fn() -> String>,
    #[cfg(test)]
    pub(super) uses: &'static [&'static str],
}

/// A script of any number of keys, ready to be called.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptText {
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) hash: &'static str,
}

impl<const K: usize, const A: usize> Script<K, A> {
    pub(super) const fn new(
        name: &'static str,
        source: &'static str,
        hash: fn() -> String,
        #[cfg_attr(not(test), expect(unused_variables, reason = "the contract test alone reads it"))]
        uses: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            source,
            hash: LazyLock::new(hash),
            #[cfg(test)]
            uses,
        }
    }

    pub(super) fn text(&'static self) -> ScriptText {
        ScriptText { name: self.name, source: self.source, hash: &self.hash }
    }

    /// The call of this script with its keys and arguments.
    pub(super) fn with(&'static self, keys: [Key; K], args: [Value; A]) -> Invocation {
        self.with_more(keys, args, Vec::new())
    }

    /// The call of a script that takes any number of arguments after its first `A`.
    pub(super) fn with_more(&'static self, keys: [Key; K], args: [Value; A], more: Vec<Value>) -> Invocation {
        let mut args = Vec::from(args);
        args.extend(more);
        share_memory(&mut args);
        Invocation { script: self.text(), keys: keys.into(), args }
    }
}

/// A script with what it is called with: can be sent as often as it takes.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) script: ScriptText,
    pub(super) keys: Vec<Key>,
    pub(super) args: Vec<Value>,
}

/// The longest argument that is copied in order to share its memory with others.
const SHORT: usize = 256;

/// Puts the short texts among these into one piece of memory. They are cloned twice on their way to the server, and the
/// first clone of one with memory of its own allocates.
fn share_memory(args: &mut [Value]) {
    let is_short = |text: &[u8]| (1..=SHORT).contains(&text.len());
    let short = args.iter_mut().filter(|arg| arg.as_bytes().is_some_and(is_short));
    let short: Vec<&mut Value> = short.collect();
    let mut all = Vec::with_capacity(short.iter().filter_map(|arg| arg.as_bytes()).map(<[u8]>::len).sum());
    short.iter().filter_map(|arg| arg.as_bytes()).for_each(|text| all.extend_from_slice(text));
    let mut all = Bytes::from(all);
    for arg in short {
        let len = arg.as_bytes().map_or(0, <[u8]>::len);
        *arg = Value::Bytes(all.split_to(len));
    }
}

pub(super) fn sha1_hex(source: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    Sha1::digest(source.as_ref()).iter().fold(String::with_capacity(40), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The script `lua/<name>.lua` with the snippets of `lua/lib` it uses in front: one text, one hash.
macro_rules! script {
    ($name:literal $(, uses $($lib:literal),+)?) => {{
        const SOURCE: &str = concat!(
            $($(include_str!(concat!("../../lua/lib/", $lib, ".lua")),)+)?
            include_str!(concat!("../../lua/", $name, ".lua")),
        );
        $crate::store::script::Script::new($name, SOURCE, || $crate::store::script::sha1_hex(SOURCE), &[$($($lib),+)?])
    }};
}
pub(super) use script;

/// An argument of a script, from a number.
pub(super) fn number(n: impl Into<i128>) -> Value {
    /// The client library writes an integer without a text of its own, and takes a greater one to be longer than it is.
    const GREATEST: i128 = 99_999_999_999_999;
    let n = n.into();
    match i64::try_from(n) {
        Ok(short) if n.abs() <= GREATEST => Value::Integer(short),
        _ => Value::from(n.to_string()),
    }
}

/// An argument of a script: whole milliseconds, rounded up so that a wait is never shorter than asked for, and at most
/// [`MAX_WAIT`].
pub(super) fn millis(duration: std::time::Duration) -> Value {
    number(duration.min(MAX_WAIT).as_nanos().div_ceil(1_000_000) as i128)
}

/// An argument of a script: the text of an error, cut to what is kept with a job.
pub(super) fn kept(error: &str) -> Value {
    error_text(BoxError::from(error).as_ref()).into()
}

/// An argument of a script: Unix ms, rounded up; 0 for what was before 1970, and the end of the year 9999 for what comes
/// after it, so that it is exact in a score.
pub(super) fn unix_millis(time: std::time::SystemTime) -> Value {
    const LATEST: i128 = 253_402_300_799_999;
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    number((since.as_nanos().div_ceil(1_000_000) as i128).min(LATEST))
}

/// The longest wait that is told apart from a longer one: 100 years. A sum of it and the server's clock is exact in a
/// score.
pub(super) const MAX_WAIT: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_number_is_written_as_it_is() {
        for n in [0, 7, -7, 99_999_999_999_999, -99_999_999_999_999, 100_000_000_000_000, i128::from(u64::MAX)] {
            assert_eq!(number(n).as_string(), Some(n.to_string()));
        }
        // Of these the client library would count a digit too many.
        assert!(matches!(number(999_999_999_999_999_u64), Value::String(_)));
    }

    #[test]
    fn a_wait_is_never_shorter_than_asked_for() {
        let cases = [(0, "0"), (1, "1"), (1_000_000, "1"), (1_000_001, "2"), (2_999_999_999, "3000")];
        for (nanos, ms) in cases {
            assert_eq!(millis(Duration::from_nanos(nanos)).as_str().unwrap(), ms, "{nanos} ns");
        }
        assert_eq!(millis(Duration::MAX), millis(MAX_WAIT));
    }

    #[test]
    fn arguments_that_share_their_memory_are_the_same_arguments() {
        let long = "x".repeat(SHORT + 1);
        let mut args =
            vec!["a".into(), 7.into(), "".into(), "bc".into(), long.as_str().into(), Value::Null, "d".into()];
        share_memory(&mut args);
        let texts = args.iter().map(Value::as_string);
        let expected = [Some("a"), Some("7"), Some(""), Some("bc"), Some(long.as_str()), None, Some("d")];
        assert!(texts.eq(expected.map(|text| text.map(str::to_owned))));
    }
}
