//! What the fuzz targets in `fuzz/` call; there for them and for tests alone.
//!
//! Each function takes any bytes, and panics if what it looks at breaks a promise. `cargo test` runs them on the corpus
//! and on mutations of it, `script/fuzz` as long as you like with a fuzzer.

use std::time::UNIX_EPOCH;

use crate::job::{IdError, JobId, QueueName, Unique};
pub use crate::store::fuzz::{reply, url};

/// A text is a job id exactly if it is the spelling of a number.
pub fn id(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let expected = number_of(text);
    match text.parse::<JobId>() {
        Ok(id) => {
            assert_eq!(Some(id.number()), expected);
            assert_eq!((id.as_str(), id.to_string().as_str()), (text, text));
            assert_eq!(JobId::from_number(id.number()), Ok(id));
            assert!(id.minted_at() >= UNIX_EPOCH);
            let json = serde_json::to_string(&id).unwrap_or_default();
            assert_eq!(serde_json::from_str::<JobId>(&json).ok(), Some(id));
        }
        Err(error) => {
            assert_eq!(expected, None, "{error}");
            assert_eq!(text.len() != 14, matches!(error, IdError::Length { .. }));
            assert!(!error.to_string().is_empty());
        }
    }
}

/// The number of a job id, read as the protocol words it and in no clever way.
fn number_of(text: &str) -> Option<u64> {
    const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digits = text.strip_prefix("JOB").filter(|digits| digits.len() == 11)?;
    let number = digits.chars().try_fold(0_u128, |number, digit| Some(number * 62 + DIGITS.find(digit)? as u128))?;
    u64::try_from(number).ok().filter(|number| *number < 1 << 63)
}

/// A name that is taken, and every deduplication key, is made of what is plain on the wire.
pub fn name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match QueueName::new(text) {
        Ok(name) => {
            assert_eq!(name.as_str(), text);
            assert!(is_plain(text) && (1..=128).contains(&text.len()) && text != "emq");
        }
        Err(error) => {
            assert!(!is_plain(text) || !(1..=128).contains(&text.len()) || text == "emq", "{error}");
        }
    }
    let key = Unique::key(text).key_on_the_wire();
    assert!(is_plain(&key) && (1..=255).contains(&key.len()), "{key:?}");
    assert!(key == text || key.starts_with("h."), "{key:?}");
}

#[cfg(test)]
mod tests {
    use emq_fuzz_inputs::run;

    #[test]
    fn a_text_is_an_id_exactly_if_it_spells_a_number() {
        run("id", 50_000, super::id);
    }

    #[test]
    fn every_name_and_key_on_the_wire_is_plain() {
        run("name", 50_000, super::name);
    }

    #[test]
    fn no_reply_makes_a_call_panic() {
        run("reply", 20_000, super::reply);
    }

    #[test]
    fn no_url_makes_a_client_panic() {
        run("url", 20_000, super::url);
    }
}
