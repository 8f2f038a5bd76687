use proc_macro2::Ident;

use super::Place;
use crate::names;

/// Every option: its key, what it takes, an example.
const KEYS: &[(&str, &str, &str)] = &[
    ("name", "a literal text", "name = \"email.send\""),
    ("queue", "a literal text", "queue = \"mail\""),
    ("max_attempts", "a literal number of at least 1", "max_attempts = 5"),
    ("priority", "a literal number, the lower first", "priority = -10"),
    ("timeout", "a duration as a literal text", "timeout = \"30s\""),
    ("lease", "a duration as a literal text", "lease = \"2m\""),
    ("retention", "a duration as a literal text", "retention = \"1day\""),
    (
        "backoff",
        "`fixed(..)` or `exponential(..)` with literal durations",
        "backoff = exponential(\"1s\", max = \"10m\", jitter = 0.2)",
    ),
    ("unique", "names of payload fields", "unique = (student, course)"),
    ("unique_until", "`start` or `end`", "unique_until = start"),
    ("unique_for", "a duration as a literal text", "unique_for = \"10m\""),
    ("unique_after", "a duration as a literal text", "unique_after = \"10m\""),
    (
        "on_conflict",
        "`keep`, `replace`, `debounce(..)` or `then_once`, or several in parentheses",
        "on_conflict = (debounce(\"1m\"), then_once)",
    ),
    ("was", "a list of literal texts", "was = [\"mail.send\"]"),
    ("cron", "a cron expression as a literal text", "cron = \"0 9 * * MON-FRI\""),
    ("tz", "a time zone as a literal text", "tz = \"Europe/Berlin\""),
    ("every", "a duration as a literal text", "every = \"10m\""),
    ("missed", "`skip`, `once` or `backfill(n)`", "missed = once"),
    ("overlap", "`allow`, `skip` or `wait`", "overlap = skip"),
    ("args", "a name for the payload struct", "args = SendEmail"),
    ("derive", "a list of derives", "derive(Clone, Debug)"),
    ("crate", "the path of emq", "crate = my_crate::emq"),
];

/// What people are used to call an option elsewhere.
const HABITS: &[(&str, &str)] = &[
    ("alias", "was"),
    ("aliases", "was"),
    ("attempts", "max_attempts"),
    ("catch_up", "missed"),
    ("deadline", "timeout"),
    ("debounce", "on_conflict"),
    ("dedup", "unique"),
    ("interval", "every"),
    ("keep", "retention"),
    ("max_retries", "max_attempts"),
    ("payload", "args"),
    ("rename", "name"),
    ("retries", "max_attempts"),
    ("retry", "backoff"),
    ("schedule", "cron"),
    ("struct", "args"),
    ("throttle", "unique_for"),
    ("timezone", "tz"),
    ("tries", "max_attempts"),
    ("ttl", "retention"),
    ("unique_by", "unique"),
    ("unique_key", "unique"),
    ("zone", "tz"),
];

/// Options that only a function has: they say what the generated struct is like, or when a job runs that nobody enqueues.
pub(super) const OF_FUNCTIONS: [&str; 7] = ["args", "cron", "derive", "every", "missed", "overlap", "tz"];

/// What a known key takes.
pub(super) fn usage(key: &Ident) -> String {
    match KEYS.iter().find(|(known, ..)| key == known) {
        Some((key, takes, example)) => format!("`{key}` takes {takes}, like `{example}`"),
        None => format!("`{key}` is not an option"),
    }
}

/// The answer to a key that doesn't exist.
pub(super) fn unknown(key: &Ident, place: Place) -> String {
    let written = names::unraw(key);
    let known = || KEYS.iter().map(|(known, ..)| *known).filter(|known| place.knows(known));
    let habit = HABITS.iter().find(|(habit, _)| *habit == written).map(|(_, known)| *known);
    let near = || known().min_by_key(|known| names::distance(&written, known));
    let meant = habit
        .filter(|habit| place.knows(habit))
        .or_else(|| near().filter(|known| names::distance(&written, known) <= if known.len() > 4 { 2 } else { 1 }));
    let hint = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
    let list = known().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    format!("there is no option `{key}`{hint}: the options are {list}")
}
