//! What is asked of a server at connect: its wire version, its own version, whether it may evict keys, and whether it keeps
//! jobs in more memory than it has to.

use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex, PoisonError},
};

use fred::{
    clients::Client,
    interfaces::ClientLike as _,
    types::{CustomCommand, Value},
};

use super::{
    error::{CallError, ConnectError, classify},
    keys::{VERSION, slot},
    reply::unexpected,
};

/// The wire version this client claims a fresh server for.
const WIRE: &str = "echomq:3.0.0";

/// The oldest Redis with the commands that the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// Up to how many bytes in a field a row is to be kept compactly. That much most payloads don't exceed, and what a larger
/// one costs beside itself is little in comparison.
const COMPACT: u64 = 1_024;

/// Checks a server at the first connection, and warns of what may lose jobs.
pub(super) async fn check(client: &Client) -> Result<(), ConnectError> {
    match check_age(client).await {
        Ok(info) => {
            warn_of_eviction(&info);
            if is_new(&info) {
                warn_of_large_rows(client).await;
            }
        }
        Err(CallError::TooOld { found }) => return Err(ConnectError::TooOld { found }),
        Err(error @ CallError::Refused { .. }) => {
            tracing::warn!(%error, "can't check the server's version and maxmemory-policy");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(check_version(client).await?)
}

/// Checks a server at a reconnect: it may have been restarted empty, or replaced by another.
pub(super) async fn check_again(client: &Client) -> Result<(), CallError> {
    match check_age(client).await {
        // Who may not ask has been told at the first connection.
        Ok(_) | Err(CallError::Refused { .. }) => check_version(client).await,
        Err(error) => Err(error),
    }
}

/// The server's INFO, unless it is too old. Not CONFIG, which managed servers forbid.
async fn check_age(client: &Client) -> Result<String, CallError> {
    let info = command(client, "INFO", &[]).await?.as_string().unwrap_or_default();
    match too_old(&info) {
        Some(found) => Err(CallError::TooOld { found }),
        None => Ok(info),
    }
}

/// Claims the server for our wire version if nobody has, and refuses one that speaks another.
async fn check_version(client: &Client) -> Result<(), CallError> {
    // Read first: a server that is read-only or out of memory for the moment can still be used by a later reconnect.
    let mut found = command(client, "GET", &[VERSION]).await?;
    if found.is_null() {
        command(client, "SET", &[VERSION, WIRE, "NX"]).await?;
        found = command(client, "GET", &[VERSION]).await?;
    }
    let found = found.as_string().ok_or_else(|| unexpected("version", &found))?;
    if speaks(&found) { Ok(()) } else { Err(CallError::ForeignVersion { found }) }
}

/// Whether a wire version is `echomq:3.x.y`.
fn speaks(version: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    version
        .strip_prefix("echomq:3.")
        .and_then(|rest| rest.split_once('.'))
        .is_some_and(|(minor, patch)| is_number(minor) && is_number(patch))
}

/// Name and version of a server that is too old, from its INFO.
fn too_old(info: &str) -> Option<String> {
    // A Valkey names the version of Redis that it is compatible with, too: 7.2.4 and up.
    let version = field(info, "redis_version")?;
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next()?, parts.next().unwrap_or(0));
    (found < OLDEST).then(|| format!("Redis {version}"))
}

fn warn_of_eviction(info: &str) {
    if let Some(policy) = field(info, "maxmemory_policy").filter(|policy| *policy != "noeviction") {
        tracing::warn!(
            policy,
            "the server may evict keys when it runs out of memory, and with them jobs; set maxmemory-policy noeviction"
        );
    }
}

/// Whether no client of this process has connected to this server since it was started.
fn is_new(info: &str) -> bool {
    static KNOWN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    field(info, "run_id").is_some_and(|server| known.insert(server.to_owned()))
}

/// Says nothing where the server doesn't tell: managed ones forbid it, and jobs are as safe without.
async fn warn_of_large_rows(client: &Client) {
    // Before Redis 7 it was called `hash-max-ziplist-value`, and since then it has both names.
    let Ok(reply) = command(client, "CONFIG", &["GET", "hash-max-*-value"]).await else { return };
    let values = reply.into_map().map(fred::types::Map::inner).unwrap_or_default();
    if let Some(bytes) = values.values().filter_map(Value::as_u64).min().filter(|bytes| *bytes < COMPACT) {
        tracing::warn!(
            bytes,
            "a job with a payload of more than so many bytes takes two to three times the memory it has to, beside the \
             payload; set hash-max-listpack-value {COMPACT}"
        );
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

async fn command(client: &Client, name: &'static str, args: &[&str]) -> Result<Value, CallError> {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    client.custom(CustomCommand::new_static(name, slot(VERSION.as_bytes()), false), args).await.map_err(classify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_wire_three_is_accepted_and_no_other() {
        for version in ["echomq:3.0.0", "echomq:3.1.0", "echomq:3.12.7"] {
            assert!(speaks(version), "{version}");
        }
        for version in ["", "echomq:2.9.9", "echomq:4.0.0", "echomq:3", "echomq:3.0", "echomq:3.x.y", "bullmq:3.0.0"] {
            assert!(!speaks(version), "{version}");
        }
    }

    #[test]
    fn a_server_older_than_the_scripts_need_is_named() {
        let info = |version: &str| format!("# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\n");
        assert_eq!(too_old(&info("6.0.16")), Some("Redis 6.0.16".into()));
        assert_eq!(too_old(&info("5.0.14")), Some("Redis 5.0.14".into()));
        for version in ["6.2.0", "7.0.15", "7.2.4", "8.0.0", "255.255.255"] {
            assert_eq!(too_old(&info(version)), None, "{version}");
        }
        assert_eq!(too_old("no such field"), None);
    }
}
