//! Replies and URLs of any bytes; see `crate::fuzz`.

use std::time::Duration;

use fred::types::{Value, config::ServerConfig};
use tokio::time::Instant;

use super::{
    Admit, Beat, ClaimCall, Counts, Extended, Listed, Promoted, Reaped, Settings, Settled, Stored, Trimmed,
    claim::{Batch, read_batch},
    error::{CallError, ConnectError},
    reply::{Reply, word},
};
use crate::job::JobId;

/// How deep a list may lie in lists; a server nests three deep.
const DEPTH: usize = 8;

/// How many parts one list may announce.
const LONGEST: usize = 64;

/// No answer makes a call panic, and what is read of it is in it.
pub fn reply(data: &[u8]) {
    let value = read_value(&mut data.split(|byte| *byte == b'\n'), DEPTH);
    let parts = match &value {
        Value::Array(parts) => parts.len(),
        _ => 0,
    };
    let claim = ClaimCall { worker: "w", request: "1", max: 1, lease: Duration::from_secs(30) };
    let read = |mut reply| read_batch(&mut reply, &claim, Instant::now());
    let batch: Option<Batch> = known(Reply::list("claim", value.clone()).and_then(read));
    batch.inspect(|batch| assert!(batch.jobs.len() * 4 <= LONGEST));
    let id: JobId = "JOB0JZGkP9AMvv".parse().expect("an id");
    known(Stored::read(id, value.clone()));
    if let Some(listed) = known(Listed::read(value.clone())) {
        assert!(listed.len() * 2 <= parts);
    }
    known(Admit::read_all(value.clone(), parts)).inspect(|admits| assert_eq!(admits.len(), parts));
    known(Extended::read(value.clone(), parts)).inspect(|extended| assert_eq!(extended.len(), parts));
    known(Counts::read(value.clone())).inspect(|counts| assert!(counts.unfinished() >= counts.active));
    known(Beat::read(value.clone()));
    known(Promoted::read(value.clone()));
    known(Reaped::read(value.clone()));
    known(Trimmed::read(value.clone()));
    known(Settled::read("complete", &value));
    known(word("state", &value));
}

/// What was read, unless the answer can't be understood: the one error there is, and it says why in a few words.
fn known<T>(read: Result<T, CallError>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(CallError::UnexpectedReply { detail, .. }) => {
            assert!(!detail.is_empty() && detail.len() <= 200, "{detail}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// A reply from a line for each of its parts, so that a mutated one is still one: `*3` is a list of the next three, `:7`
/// a number, `,1.5` a fraction, `#` a truth, `_` nothing, and anything else a text.
fn read_value<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, depth: usize) -> Value {
    let Some(line) = lines.next() else { return Value::Null };
    let (kind, rest) = line.split_first().unwrap_or((&b' ', &[]));
    let text = || std::str::from_utf8(rest).unwrap_or_default();
    match kind {
        b'*' if depth > 0 => {
            let length = text().parse().map_or(0, |length: usize| length.min(LONGEST));
            Value::Array((0..length).map(|_| read_value(lines, depth - 1)).collect())
        }
        b':' => Value::Integer(text().parse().unwrap_or(i64::MIN)),
        b',' => Value::Double(text().parse().unwrap_or(f64::NAN)),
        b'#' => Value::Boolean(rest == b"t"),
        b'_' => Value::Null,
        // As the client library has it: a text, if it is one.
        _ => match std::str::from_utf8(line) {
            Ok(text) => text.into(),
            Err(_) => Value::Bytes(line.to_vec().into()),
        },
    }
}

/// Whether it says where each server is.
fn is_complete(server: &ServerConfig) -> bool {
    match server {
        ServerConfig::Unix { path } => !path.as_os_str().is_empty(),
        ServerConfig::Centralized { server } => !server.host.is_empty(),
        ServerConfig::Clustered { hosts, .. } | ServerConfig::Sentinel { hosts, .. } => {
            !hosts.is_empty() && hosts.iter().all(|server| !server.host.is_empty())
        }
    }
}

/// A URL is understood or refused with a reason, and never shown with its password.
pub fn url(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else { return };
    let second = Duration::from_secs(1);
    let settings = Settings {
        url: url.to_owned(),
        username: None,
        password: None,
        connect_timeout: second,
        command_timeout: second,
        retry_for: second,
    };
    match settings.config() {
        Ok(config) => assert!(is_complete(&config.server), "{:?}", config.server),
        Err(ConnectError::Url { reason }) => assert!(!reason.is_empty()),
        Err(ConnectError::TlsDisabled) => {}
        Err(error) => panic!("{error:?}"),
    }
}
