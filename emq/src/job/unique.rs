use std::fmt::Write as _;

use serde::Serialize;
use sha1::{Digest as _, Sha1};

use super::name::is_plain;

/// The most bytes of a deduplication key on the wire; a longer one is hashed.
const MAX_KEY_LEN: usize = 255;

/// A deduplication key as it stands on the wire: as it is where it fits, else its hash.
///
/// The hash has a character in front that no plain key of its length would be mistaken for by accident: `h.` and 40
/// digits. A plain key may still spell the same text; whoever does that on purpose only collides with their own key.
pub(crate) fn deduplication_key(key: &str) -> String {
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
}
