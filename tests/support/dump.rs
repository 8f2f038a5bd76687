//! What is on the server, key by key, in a form to compare and to print.

use std::collections::BTreeMap;
use std::fmt;

use crate::raw::Raw;
use crate::resp::Reply;

/// One script, so that nothing changes while it looks.
const SCRIPT: &str = "
local read = {
    string = function(key) return redis.call('GET', key) end,
    hash = function(key) return redis.call('HGETALL', key) end,
    list = function(key) return redis.call('LRANGE', key, 0, -1) end,
    set = function(key) return redis.call('SMEMBERS', key) end,
    zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
    stream = function(key) return redis.call('XRANGE', key, '-', '+') end,
}
local found, cursor = {}, '0'
repeat
    local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do
        local kind = redis.call('TYPE', key).ok
        if read[kind] then
            found[#found + 1] = {key, kind, redis.call('PTTL', key), read[kind](key)}
        end
    end
until cursor == '0'
return found
";

/// Where a line of a dump comes from; the order of a dump is the order of these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: String,
    kind: String,
    /// Keeps a list and a stream in their order.
    index: usize,
    /// A field or member; empty for a string.
    name: String,
}

/// Every key that matches a pattern, with all it holds.
///
/// Prints one line per member, sorted, with bytes escaped:
///
/// ```text
/// emq:{mail}:done   (expires)
/// emq:{mail}:done   string = 1
/// emq:{mail}:job:7  hash attempts = 2
/// emq:{mail}:live   zset 7 @ 1712345678901
/// emq:{mail}:wait   list [0] = 8
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Dump {
    lines: BTreeMap<Place, String>,
}

impl Dump {
    /// Reads all keys that match a pattern of the server, `emq:{mail}:*` for example.
    ///
    /// # Panics
    ///
    /// If the server refuses or the connection fails.
    pub async fn of(raw: &mut Raw, pattern: &str) -> Self {
        let reply = raw.command(&["EVAL", SCRIPT, "0", pattern]).await;
        let mut dump = Self::default();
        for found in reply.items() {
            let [key, kind, ttl, content] = found.items() else {
                panic!("not a key: {found}");
            };
            dump.add(&escape(key), kind.text(), ttl.int() >= 0, content);
        }
        dump
    }

    /// Returns the dump without the keys that match a pattern of `*` and `?`, and without
    /// the members whose key, a blank and name match it: `"*:job:* enqueued_at"`.
    #[must_use]
    pub fn without(&self, pattern: &str) -> Self {
        let mut lines = self.lines.clone();
        lines.retain(|place, _| {
            let member = format!("{} {}", place.key, place.name);
            !matches(pattern.as_bytes(), place.key.as_bytes()) && !matches(pattern.as_bytes(), member.as_bytes())
        });
        Self { lines }
    }

    /// Returns what has to happen to this dump to become the other, a line each: `+` for a
    /// member that is new, `-` for one that went, `~` for one that has another value.
    ///
    /// An element of a list that moves up shows as a change.
    pub fn diff(&self, other: &Self) -> Vec<String> {
        let mut places: Vec<&Place> = self.lines.keys().chain(other.lines.keys()).collect();
        places.sort_unstable();
        places.dedup();
        let changes = places.into_iter().filter_map(|place| match (self.lines.get(place), other.lines.get(place)) {
            (None, Some(new)) => Some(format!("+ {}", line(place, new))),
            (Some(old), None) => Some(format!("- {}", line(place, old))),
            (Some(old), Some(new)) if old != new => Some(format!("~ {} (was {old})", line(place, new))),
            _ => None,
        });
        changes.collect()
    }

    /// Returns the lines of the dump.
    pub fn lines(&self) -> Vec<String> {
        self.lines.iter().map(|(place, v)| line(place, v)).collect()
    }

    /// Returns the names of the keys.
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.lines.keys().map(|place| place.key.as_str()).collect();
        keys.dedup();
        keys
    }

    /// Returns the value of a field, the score of a member, or with the name `""` a string.
    pub fn get(&self, key: &str, name: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines
            .find(|(place, _)| place.key == key && place.name == name && place.kind != EXPIRES)
            .map(|(_, value)| value.as_str())
    }

    /// Returns whether a key has a time to live.
    pub fn expires(&self, key: &str) -> bool {
        self.lines.keys().any(|place| place.key == key && place.kind == EXPIRES)
    }

    /// Returns whether no key matched.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn add(&mut self, key: &str, kind: &str, expires: bool, content: &Reply) {
        let mut add = |kind: &str, index: usize, name: String, value: String| {
            let place = Place { key: key.to_owned(), kind: kind.to_owned(), index, name };
            self.lines.insert(place, value);
        };
        if expires {
            add(EXPIRES, 0, String::new(), String::new());
        }
        match kind {
            "string" => add(kind, 0, String::new(), escape(content)),
            "hash" | "zset" => {
                for pair in content.items().chunks_exact(2) {
                    add(kind, 0, escape(&pair[0]), escape(&pair[1]));
                }
            }
            "set" => {
                for member in content.items() {
                    add(kind, 0, escape(member), String::new());
                }
            }
            _ => {
                for (index, item) in content.items().iter().enumerate() {
                    add(kind, index, format!("[{index}]"), escape(item));
                }
            }
        }
    }
}

/// Sorts before the kinds of keys.
const EXPIRES: &str = "(expires)";

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// The same as `Display`: what `assert_eq!` prints has to be readable.
impl fmt::Debug for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

fn line(place: &Place, value: &str) -> String {
    let Place { key, kind, name, .. } = place;
    match kind.as_str() {
        EXPIRES => format!("{key} {kind}"),
        "string" => format!("{key} {kind} = {value}"),
        "set" => format!("{key} {kind} {name}"),
        "zset" => format!("{key} {kind} {name} @ {value}"),
        _ => format!("{key} {kind} {name} = {value}"),
    }
}

/// Leaves text as it is, JSON above all, and escapes what isn't text.
fn escape(reply: &Reply) -> String {
    let Reply::Bulk(bytes) = reply else {
        return reply.to_string();
    };
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char.is_control() || char == '\\' {
                shown.extend(char.escape_default());
            } else {
                shown.push(char);
            }
        }
        shown.push_str(&chunk.invalid().escape_ascii().to_string());
    }
    shown
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| matches(rest, &text[skip..])),
        Some((b'?', rest)) => !text.is_empty() && matches(rest, &text[1..]),
        Some((wanted, rest)) => text.first() == Some(wanted) && matches(rest, &text[1..]),
    }
}
