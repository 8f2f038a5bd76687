//! A transition's Lua text with its number of keys and arguments.
//!
//! Scripts and not a function library: a script is addressed by its content, so during a rolling deploy two versions of
//! a transition live side by side and each worker runs its own. A library is addressed by its name, and loading a new
//! one would change what running workers do.

use std::sync::LazyLock;

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
    Value::from(n.into().to_string())
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
