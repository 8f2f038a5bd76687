//! What an error of the client library means: not sent, unknown, or refused by the server.

use std::{error::Error, fmt, sync::Arc};

use fred::error::{Error as FredError, ErrorKind};

use crate::job::BoxError;

/// Why a call of the server has no answer, or not the one it should have.
///
/// Calls are repeated where it helps before this error is given, for up to
/// [`ClientBuilder::retry_for`](crate::ClientBuilder::retry_for).
///
/// # Examples
///
/// ```
/// # async fn example(queue: emq::Queue, id: emq::JobId) {
/// use emq::CallError;
///
/// match queue.revive(id).await {
///     Ok(outcome) => println!("{outcome:?}"),
///     Err(CallError::Unknown { .. }) => println!("it may have been carried out; doing it again is harmless"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call never reached the server.
    #[error(
        "the server can't be reached, and nothing was sent: {source}; check that it runs and that the URL is right"
    )]
    Unreachable {
        /// What the connection said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The call was sent, but no answer came: it may or may not have been carried out. Repeating it is harmless.
    #[error("the server gave no answer: {source}; the call may have been carried out, and repeating it is harmless")]
    Unknown {
        /// What the connection said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The server refused the call; nothing was written.
    #[error("the server refused the call: {message}{}", hint(code))]
    Refused {
        /// The first word of the server's error, such as `OOM`, `READONLY`, `NOPERM` or `EMQSTATE`.
        code: String,
        /// The whole of it.
        message: String,
    },
    /// The answer isn't one that the call can have: another program writes to these keys, or a proxy garbles them.
    #[error(
        "the answer to `{call}` can't be understood ({detail}); does something else write to the keys of this queue?"
    )]
    UnexpectedReply {
        /// The transition.
        call: &'static str,
        /// What came instead.
        detail: String,
    },
    /// The server was taken over by a wire version that this client doesn't speak. It is used again once a reconnect meets
    /// one that it does.
    #[error("the server's keys are of wire version {found:?}, and this client speaks echomq:3; upgrade the older side")]
    ForeignVersion {
        /// What stands in `{emq}:version`.
        found: String,
    },
    /// The server was replaced by one that is older than emq needs.
    #[error("the server is {found} now, and emq needs Redis 6.2 or Valkey 7.2 or later; upgrade it")]
    TooOld {
        /// Its name and version.
        found: String,
    },
    /// The client has been closed.
    #[error("the client has been closed")]
    Closed,
}

impl CallError {
    /// Whether the same call may succeed later by itself: the server was away, busy or read-only.
    ///
    /// ```
    /// assert!(!emq::CallError::Closed.is_transient());
    /// ```
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unknown { .. } => true,
            Self::Refused { code, .. } => TRANSIENT.contains(&code.as_str()),
            Self::UnexpectedReply { .. } | Self::ForeignVersion { .. } | Self::TooOld { .. } | Self::Closed => false,
        }
    }

    /// Whether the server refuses what only a primary takes: this one is a replica, or has become one.
    pub(super) fn is_of_a_replica(&self) -> bool {
        self.is_code("READONLY") || self.is_code("MASTERDOWN")
    }

    /// Whether the server itself said this word first.
    pub(crate) fn is_code(&self, word: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == word)
    }
}

/// Words with which a server refuses a call that it may accept a moment later.
const TRANSIENT: [&str; 8] =
    ["LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "NOREPLICAS", "UNKILLABLE"];

fn hint(code: &str) -> &'static str {
    match code {
        "OOM" => "; raise maxmemory or drain the queue: jobs in hand can still be completed",
        "READONLY" => "; this is a replica: connect to the primary, or through Sentinel",
        "NOPERM" => "; the user needs EVAL, EVALSHA and the commands in docs/keys.md on the keys emq:* and {emq}:*",
        "NOAUTH" | "WRONGPASS" => "; check the user and the password",
        "MISCONF" => "; the server can't save its data: see its log",
        "BUSY" => "; a script of some other program runs for too long: SCRIPT KILL on the server ends it",
        "LOADING" => "; the server has just started: try again when it has read its data",
        "NOREPLICAS" => "; too few replicas are connected for its min-replicas-to-write",
        "DENIED" => "; give the server a password, or let it listen on this address only",
        _ => "",
    }
}

/// Why a client couldn't be connected.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use emq::{Client, ConnectError};
///
/// let error = Client::connect("mailto:somebody").await.unwrap_err();
/// assert!(matches!(error, ConnectError::Url { .. }));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL can't be understood.
    #[error(
        "the URL can't be used: {reason}; write redis://host:6379, rediss://host:6379 (TLS), unix:///path, \
         redis-cluster://host:6379 or redis-sentinel://host:26379?sentinelServiceName=name"
    )]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// The URL asks for TLS, which this build doesn't have.
    #[error("the URL asks for TLS; enable the feature `tls-rustls` or `tls-native` of emq")]
    TlsDisabled,
    /// The server can't be reached.
    #[error("the server at {server} can't be reached: {source}; check that it runs and that the URL is right")]
    Unreachable {
        /// Its address, without user and password.
        server: String,
        /// What the connection said.
        source: BoxError,
    },
    /// The server has as many connections as it takes.
    #[error(
        "the server at {server} takes no more connections: {source}; raise its maxclients, or see by CLIENT LIST who \
         holds them"
    )]
    Full {
        /// Its address, without user and password.
        server: String,
        /// What the server said.
        source: BoxError,
    },
    /// No thread can be started to renew leases.
    #[error("no thread can be started to renew leases: {source}")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
    /// The server refused the user or the password.
    #[error("the server refused the user or the password: {source}")]
    Denied {
        /// What the server said.
        source: BoxError,
    },
    /// The server is older than emq needs.
    #[error("the server is {found}, and emq needs Redis 6.2 or Valkey 7.2 or later")]
    TooOld {
        /// Its name and version.
        found: String,
    },
    /// A call failed while the connection was set up.
    #[error("the connection can't be set up: {0}")]
    Call(#[from] CallError),
}

/// Puts an error of fred into one of our three classes. Valid for `max_command_attempts = 1`; fred tells most of its own
/// errors apart by their text alone, so the tests below hold the texts.
pub(super) fn classify(error: FredError) -> CallError {
    if let Some(refused) = refused(&error) {
        return refused;
    }
    let details = error.details();
    let not_sent = match error.kind() {
        ErrorKind::Backpressure => true,
        ErrorKind::Unknown => details == "Failed to route command.",
        ErrorKind::Canceled => details == "Connection closed unexpectedly.",
        // A node that redirects a command hasn't carried it out.
        ErrorKind::Routing => details == "Too many redirections.",
        ErrorKind::Cluster => details.starts_with("All keys must") || details.starts_with("Missing server"),
        _ => false,
    };
    let source = Arc::new(LinkError(error));
    if not_sent { CallError::Unreachable { source } } else { CallError::Unknown { source } }
}

/// What the server itself said, if anything: its errors begin with a word in capitals.
fn refused(error: &FredError) -> Option<CallError> {
    let message = said_by_the_server(error.details());
    let code = message.split_whitespace().next().unwrap_or_default();
    let is_code =
        code.len() > 1 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    (is_code && !matches!(error.kind(), ErrorKind::IO | ErrorKind::Timeout))
        .then(|| CallError::Refused { code: code.to_owned(), message: message.to_owned() })
}

/// The server's own words, taken out of what Redis before 7.0 puts around an error in a script:
/// `ERR Error running script (call to f_…): @user_script:12: @user_script: 12: -OOM command not allowed …`.
fn said_by_the_server(details: &str) -> &str {
    let wrapped = details.starts_with("ERR Error running script");
    let place = details.rsplit_once("@user_script").filter(|_| wrapped);
    let inner = place.and_then(|(_, rest)| rest.trim_start_matches([':', ' ']).split_once(": "));
    inner.map_or(details, |(_line, said)| said.strip_prefix('-').unwrap_or(said))
}

/// What an error of the first connection means.
pub(super) fn classify_connect(error: FredError, server: &str) -> ConnectError {
    let server = server.to_owned();
    let details = error.details();
    match error.kind() {
        ErrorKind::Auth => ConnectError::Denied { source: LinkError(error).into() },
        ErrorKind::Url | ErrorKind::Config => ConnectError::Url { reason: details.to_owned() },
        _ if details.starts_with("ERR max number of clients") => {
            ConnectError::Full { server, source: LinkError(error).into() }
        }
        // RESP3 came with Redis 6.
        _ if details.starts_with("ERR unknown command") => ConnectError::TooOld { found: "Redis 5 or older".into() },
        _ => match refused(&error) {
            Some(refused) => ConnectError::Call(refused),
            None => ConnectError::Unreachable { server, source: LinkError(error).into() },
        },
    }
}

/// Whether a call ended because nothing was heard within the client's own timeout.
pub(super) fn is_timeout(error: &CallError) -> bool {
    let CallError::Unknown { source } = error else { return false };
    source.downcast_ref::<LinkError>().is_some_and(|error| *error.0.kind() == ErrorKind::Timeout)
}

/// An error of the client library, in words for people. It is the first thing that somebody sees who has no server yet,
/// often by its `Debug`.
struct LinkError(FredError);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The library keeps an error of the system as its `Debug` text: `Os { code: 111, …, message: "…" }`.
        let details = self.0.details();
        let message = details.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
        f.write_str(message.map_or(details, |(message, _)| message))
    }
}

impl fmt::Debug for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Error for LinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(kind: ErrorKind, details: &'static str) -> CallError {
        classify(FredError::new(kind, details))
    }

    #[test]
    fn an_error_of_the_server_is_told_by_its_first_word() {
        for (kind, details, code) in [
            (ErrorKind::Unknown, "EMQSTATE the job is pending, not dead", "EMQSTATE"),
            (ErrorKind::Unknown, "OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
            (ErrorKind::InvalidArgument, "WRONGTYPE Operation against a key", "WRONGTYPE"),
            (ErrorKind::NotFound, "NOSCRIPT No matching script.", "NOSCRIPT"),
            (ErrorKind::Auth, "NOAUTH Authentication required.", "NOAUTH"),
            (
                ErrorKind::Unknown,
                "ERR Error running script (call to f_48d8454c8e37fd93): @user_script:12: @user_script: 12: \
                 -OOM command not allowed when used memory > 'maxmemory'.",
                "OOM",
            ),
            (
                ErrorKind::Unknown,
                "ERR Error running script (call to f_d6831e2734960e63): @user_script:34: WRONGTYPE Operation against a key",
                "WRONGTYPE",
            ),
            (ErrorKind::Unknown, "ERR Error running script (call to f_d6): something else", "ERR"),
        ] {
            assert!(class(kind, details).is_code(code), "{details}");
        }
    }

    #[test]
    fn only_what_may_pass_by_itself_is_transient() {
        for word in TRANSIENT {
            assert!(class(ErrorKind::Unknown, word).is_transient(), "{word}");
        }
        for word in ["OOM x", "WRONGTYPE x", "NOPERM x", "EMQSTATE x", "ERR x"] {
            assert!(!class(ErrorKind::Unknown, word).is_transient(), "{word}");
        }
        assert!(class(ErrorKind::IO, "Connection closed.").is_transient());
        assert!(class(ErrorKind::Unknown, "Failed to route command.").is_transient());
        let unexpected = CallError::UnexpectedReply { call: "get", detail: String::new() };
        for error in [CallError::Closed, CallError::ForeignVersion { found: String::new() }, unexpected] {
            assert!(!error.is_transient(), "{error}");
        }
    }

    #[test]
    fn a_timeout_is_told_from_a_broken_connection() {
        assert!(is_timeout(&class(ErrorKind::Timeout, "Request timed out.")));
        assert!(!is_timeout(&class(ErrorKind::IO, "Connection closed.")));
        assert!(!is_timeout(&CallError::Closed));
    }

    #[test]
    fn a_refusal_says_who_can_do_what_about_it() {
        for (word, advice) in [
            ("OOM", "raise maxmemory"),
            ("READONLY", "connect to the primary"),
            ("NOPERM", "the user needs"),
            ("NOAUTH", "check the user"),
            ("WRONGPASS", "check the user"),
            ("MISCONF", "see its log"),
        ] {
            let text = CallError::Refused { code: word.into(), message: format!("{word} so") }.to_string();
            assert!(text.contains(&format!("{word} so; ")) && text.contains(advice), "{text}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_named_in_words_for_people() {
        let refused = "Os { code: 111, kind: ConnectionRefused, message: \"Connection refused\" }";
        let error = classify_connect(FredError::new(ErrorKind::IO, refused), "127.0.0.1:6379");
        let text = "the server at 127.0.0.1:6379 can't be reached: Connection refused; \
                    check that it runs and that the URL is right";
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), r#"Unreachable { server: "127.0.0.1:6379", source: "Connection refused" }"#);
    }

    #[test]
    fn only_what_certainly_was_not_sent_is_unreachable() {
        for (kind, details) in [
            (ErrorKind::Unknown, "Failed to route command."),
            (ErrorKind::Canceled, "Connection closed unexpectedly."),
            (ErrorKind::Routing, "Too many redirections."),
            (ErrorKind::Backpressure, "Max number of in-flight commands reached."),
        ] {
            assert!(matches!(class(kind, details), CallError::Unreachable { .. }), "{details}");
        }
    }

    #[test]
    fn a_lost_connection_or_a_timeout_is_unknown_never_failed() {
        for (kind, details) in [
            (ErrorKind::IO, "Connection closed."),
            (ErrorKind::IO, "ETIMEDOUT"),
            (ErrorKind::Timeout, "Request timed out."),
            (ErrorKind::Canceled, "Canceled."),
            (ErrorKind::Unknown, "Too many failed write attempts."),
            (ErrorKind::Unknown, "Max attempts reached."),
        ] {
            assert!(matches!(class(kind, details), CallError::Unknown { .. }), "{details}");
        }
    }
}
