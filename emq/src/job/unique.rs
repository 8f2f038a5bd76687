use std::{fmt, fmt::Write as _, time::Duration};

use serde::Serialize;
use sha1::{Digest as _, Sha1};

use super::name::is_plain;

/// The most bytes of a deduplication key on the wire; a longer one is hashed.
const MAX_KEY_LEN: usize = 255;

/// A deduplication key with its rules: for how long a job holds it, and what becomes of another that comes meanwhile.
///
/// A text is one, too: `.unique("invoice-42")` is held until the job has ended, and a job that comes meanwhile is a
/// [`Duplicate`](crate::Admission::Duplicate). docs/uniqueness.md has all the rules in a table.
///
/// Of the ways to hold it the last one counts that is called, and so of [`replace_payload`](Self::replace_payload) and
/// [`debounce`](Self::debounce).
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct IndexJob { page: u32 }
/// # impl emq::Job for IndexJob { const NAME: &'static str = "index"; }
/// # async fn example(client: emq::Client) -> Result<(), emq::EnqueueError> {
/// use std::time::Duration;
/// use emq::Unique;
///
/// // Five seconds after the last change of the page, and a minute after the first one at the latest.
/// let settled = Unique::key("page-7").until_start().debounce(Duration::from_secs(60));
/// client.enqueue(IndexJob { page: 7 }).delay(Duration::from_secs(5)).unique(settled).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it is given to `.unique(..)`"]
pub struct Unique {
    key: String,
    held: Held,
    waiting: Waiting,
    then_once: bool,
}

/// For how long a job holds its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Held {
    #[default]
    UntilEnd,
    UntilStart,
    For(Duration),
    AfterEnd(Duration),
}

/// What becomes of the holder while it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiting {
    #[default]
    Keeps,
    Replaced,
    Debounced {
        latest: Duration,
    },
}

impl Unique {
    /// A key of a queue that one job can hold at a time; until it has ended, unless something else is said.
    ///
    /// Any text will do. On the server, one that is longer than 255 bytes, or has other characters than `A-Z a-z 0-9 . _ -`,
    /// stands as its hash.
    ///
    /// ```
    /// let unique = emq::Unique::key("invoice-42");
    /// assert_eq!(unique, "invoice-42".into());
    /// ```
    pub fn key(key: impl Into<String>) -> Self {
        Self { key: key.into(), held: Held::default(), waiting: Waiting::default(), then_once: false }
    }

    /// Holds the key until the job is claimed for the first time: what comes while it runs is a job of its own.
    ///
    /// For work that looks at the newest state when it begins. A job that fails and waits for its next attempt doesn't hold
    /// the key again.
    ///
    /// ```
    /// let unique = emq::Unique::key("page-7").until_start();
    /// ```
    pub fn until_start(mut self) -> Self {
        self.held = Held::UntilStart;
        self
    }

    /// Holds the key for so long from the enqueue, whether the job has ended by then or not. Rounded up to whole ms.
    ///
    /// If it ends earlier, done or dead, the key is still held; if it takes longer, another job may run beside it. A job that is
    /// removed or cancelled frees the key at once.
    ///
    /// ```
    /// // At most one of these jobs in ten minutes.
    /// let unique = emq::Unique::key("digest-7").for_(std::time::Duration::from_secs(600));
    /// ```
    pub fn for_(mut self, window: Duration) -> Self {
        self.held = Held::For(window);
        self
    }

    /// Holds the key until so long after the job has ended, done or dead. Rounded up to whole ms.
    ///
    /// A job that is removed or cancelled frees the key at once.
    ///
    /// ```
    /// // Ten minutes of rest between two of these jobs.
    /// let unique = emq::Unique::key("digest-7").after_end(std::time::Duration::from_secs(600));
    /// ```
    pub fn after_end(mut self, rest: Duration) -> Self {
        self.held = Held::AfterEnd(rest);
        self
    }

    /// While the holder waits, lets it do what this job would: it takes over payload, type, headers, `max_attempts` and
    /// expiry, and keeps its id, lane, priority, time, failures and the way it holds the key.
    ///
    /// The answer is [`Replaced`](crate::Admission::Replaced). A holder that runs can't take anything over: then the answer is
    /// [`Duplicate`](crate::Admission::Duplicate), unless there is [`then_once`](Self::then_once).
    ///
    /// ```
    /// let unique = emq::Unique::key("profile-7").replace_payload();
    /// ```
    pub fn replace_payload(mut self) -> Self {
        self.waiting = Waiting::Replaced;
        self
    }

    /// As [`replace_payload`](Self::replace_payload), and puts the holder off to the time of this job, its
    /// [`delay`](crate::Enqueue::delay) or [`at`](crate::Enqueue::at), but never beyond `latest` after the holder was
    /// enqueued. [`Duration::MAX`] is no bound.
    ///
    /// A holder whose time has come, and one that waits for its next attempt, aren't put off.
    ///
    /// ```
    /// let unique = emq::Unique::key("page-7").debounce(std::time::Duration::from_secs(60));
    /// ```
    pub fn debounce(mut self, latest: Duration) -> Self {
        self.waiting = Waiting::Debounced { latest };
        self
    }

    /// While the holder runs, parks this job until it has ended, and lets it run then, once: a further one that comes meanwhile
    /// is taken over by the parked one, with its time.
    ///
    /// The answer is [`Parked`](crate::Admission::Parked), and then [`Replaced`](crate::Admission::Replaced). The parked job
    /// gets the key as soon as the holder has ended in whatever way, also where that would have kept it for longer.
    ///
    /// ```
    /// let unique = emq::Unique::key("sync-7").replace_payload().then_once();
    /// ```
    pub fn then_once(mut self) -> Self {
        self.then_once = true;
        self
    }

    /// The same, among the jobs of this lane alone.
    pub(crate) fn within(mut self, lane: &super::LaneName) -> Self {
        // What no key that a user writes is likely to begin with.
        self.key = format!("\0{}\0{}", lane.as_str(), self.key);
        self
    }

    /// The key as it stands on the wire.
    pub(crate) fn key_on_the_wire(&self) -> String {
        deduplication_key(&self.key)
    }

    /// What the job's row says of how it holds the key, with times from the enqueue; nothing for what is the default.
    pub(crate) fn held_text(&self) -> Option<String> {
        match self.held {
            Held::UntilEnd => None,
            Held::UntilStart => Some("start".to_owned()),
            Held::For(window) => Some(format!("for {}", whole_millis(window))),
            Held::AfterEnd(rest) => Some(format!("after {}", whole_millis(rest))),
        }
    }

    /// What the enqueue is to do if the key is held, in the words of the script.
    pub(crate) fn conflict_text(&self) -> String {
        let waiting = match self.waiting {
            Waiting::Keeps => String::new(),
            Waiting::Replaced => "replace".to_owned(),
            Waiting::Debounced { latest } => format!("debounce {}", whole_millis(latest)),
        };
        let running = if self.then_once { "then" } else { "" };
        format!("{waiting} {running}").trim().to_owned()
    }
}

impl<T: Into<String>> From<T> for Unique {
    fn from(key: T) -> Self {
        Self::key(key)
    }
}

impl fmt::Debug for Unique {
    // Not the key: it may be made from a payload, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unique")
            .field("held", &self.held)
            .field("waiting", &self.waiting)
            .field("then_once", &self.then_once)
            .finish_non_exhaustive()
    }
}

/// Rounded up, so that a wait is never shorter than asked for; and at most 100 years, so that a sum of it and the server's
/// clock is exact in a score.
fn whole_millis(wait: Duration) -> u128 {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    wait.min(LONGEST).as_nanos().div_ceil(1_000_000)
}

/// A deduplication key as it stands on the wire: as it is where it fits, else its hash.
///
/// The hash has a character in front that no plain key of its length would be mistaken for by accident: `h.` and 40
/// digits. A plain key may still spell the same text; whoever does that on purpose only collides with their own key.
fn deduplication_key(key: &str) -> String {
    if !key.is_empty() && key.len() <= MAX_KEY_LEN && key.chars().all(is_plain) {
        return key.to_owned();
    }
    let mut text = String::with_capacity(42);
    text.push_str("h.");
    for byte in Sha1::digest(key.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The deduplication key of the fields that `#[job(unique = (..))]` names: the job's name and the fields as canonical JSON.
///
/// The way through [`serde_json::Value`] sorts the keys of maps, so that two equal maps make one key.
pub fn unique_key_of(name: &str, fields: &impl Serialize) -> Option<String> {
    // What can't be encoded here can't be encoded as a payload either, and that is where the error is reported.
    let fields = serde_json::to_value(fields).ok()?;
    Some(format!("{name} {fields}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_fits_stays_readable_and_any_other_is_hashed() {
        assert_eq!(deduplication_key("invoice-42"), "invoice-42");
        for odd in ["", "a b", "ключ", &"k".repeat(256)] {
            let key = deduplication_key(odd);
            assert_eq!(key.len(), 42, "{odd:?}");
            assert!(key.chars().all(is_plain));
        }
        assert_ne!(deduplication_key("a b"), deduplication_key("a  b"));
    }

    #[test]
    fn equal_maps_make_one_key_whatever_their_order() {
        use std::collections::HashMap;
        let forwards: HashMap<_, _> = (0..64).map(|n| (n.to_string(), n)).collect();
        let backwards: HashMap<_, _> = (0..64).rev().map(|n| (n.to_string(), n)).collect();
        assert_eq!(unique_key_of("enroll", &(&forwards, 1)), unique_key_of("enroll", &(&backwards, 1)));
        assert_ne!(unique_key_of("enroll", &(&forwards, 1)), unique_key_of("leave", &(&forwards, 1)));
    }

    #[test]
    fn a_text_is_a_key_that_is_held_until_the_end_and_replaces_nothing() {
        for unique in [Unique::from("k"), Unique::from("k".to_owned()), Unique::from(&"k".to_owned())] {
            assert_eq!(unique, Unique::key("k"));
            assert_eq!((unique.held_text(), unique.conflict_text().as_str()), (None, ""));
        }
    }

    #[test]
    fn of_the_ways_to_hold_a_key_the_last_one_counts_and_parts_of_a_ms_are_a_ms() {
        let unique = Unique::key("k").until_start().for_(Duration::from_nanos(1));
        assert_eq!(unique.held_text().as_deref(), Some("for 1"));
        let unique = unique.after_end(Duration::MAX).replace_payload().debounce(Duration::from_millis(7)).then_once();
        assert_eq!(unique.held_text().as_deref(), Some("after 3153600000000"));
        assert_eq!(unique.conflict_text(), "debounce 7 then");
        assert_eq!(Unique::key("k").replace_payload().conflict_text(), "replace");
        assert_eq!(Unique::key("k").then_once().conflict_text(), "then");
    }

    #[test]
    fn a_key_is_not_printed() {
        assert!(!format!("{:?}", Unique::key("ada@example.org")).contains("ada"));
    }
}
