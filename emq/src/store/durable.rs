//! Whether what was enqueued is elsewhere too: on replicas, or on disks.
//!
//! The server counts for a connection what *this* connection has written. So the enqueue and the wait have to go over
//! one and the same, and after it was made anew the server would say at once that everything is everywhere. Hence the
//! name: a connection that doesn't bear it at the end isn't the one that has written.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fred::types::Value;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Admitted, Item, Store,
    connection::{Connection, Settings},
    error::{CallError, ConnectError},
    reply::unexpected,
    script::{millis, number},
};
use crate::job::QueueName;

/// How many enqueues of one client may wait at once. A connection on which one waits can do nothing else.
const MAX_WAITING: usize = 8;

/// How much longer than the server the client waits for the end of a wait, before it takes the link for mute.
const PATIENCE: Duration = Duration::from_secs(2);

/// What waits for replicas, and what for disks.
pub(super) const WAITS: [&str; 2] = ["WAIT", "WAITAOF"];

/// The shortest wait: the server takes none for one without end.
const SHORTEST: Duration = Duration::from_millis(1);

/// The longest: the server refuses what it can't add to its clock.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Where a job has to be, beside the memory of the server, before its enqueue answers; see
/// [`Enqueue::durable`](crate::Enqueue::durable).
///
/// A number stands for that many [`replicas`](Self::replicas).
///
/// # Examples
///
/// ```
/// use emq::Durability;
///
/// assert_eq!(Durability::from(1), Durability::replicas(1));
/// assert_eq!(Durability::synced(1).to_string(), "on the disks of the server and of 1 replica");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    replicas: u32,
    synced: bool,
}

impl Durability {
    /// In the memory of so many replicas (`WAIT`): it outlives the death of the server if one of those takes its place.
    ///
    /// ```
    /// let one = emq::Durability::replicas(1);
    /// ```
    #[must_use]
    pub const fn replicas(replicas: u32) -> Self {
        Self { replicas, synced: false }
    }

    /// In the append-only file of the server and in those of so many replicas, and on the disk (`WAITAOF`): it outlives
    /// a loss of power, too. With none, the server's own is enough. Needs Redis 7.2 or Valkey, with `appendonly yes`
    /// wherever it is to count.
    ///
    /// ```
    /// let here = emq::Durability::synced(0);
    /// ```
    #[must_use]
    pub const fn synced(replicas: u32) -> Self {
        Self { replicas, synced: true }
    }

    /// The command that waits for it, and its arguments.
    fn command(self, within: Duration) -> (&'static str, Vec<Value>) {
        let mut args = vec![number(self.replicas), millis(within)];
        if self.synced {
            args.insert(0, number(1));
        }
        (WAITS[usize::from(self.synced)], args)
    }

    /// What the answer to the command says.
    fn read(self, reply: &Value) -> Result<Reached, CallError> {
        let count = |value: &Value| value.as_i64().and_then(|count| u32::try_from(count).ok());
        let counts = match reply {
            Value::Array(both) if self.synced => both.iter().map(count).collect::<Option<Vec<_>>>(),
            value => count(value).filter(|_| !self.synced).map(|replicas| vec![1, replicas]),
        };
        match counts.as_deref() {
            Some(&[here, replicas]) => Ok(Reached { replicas, is_enough: here > 0 && replicas >= self.replicas }),
            _ => Err(unexpected(self.command(SHORTEST).0, reply)),
        }
    }
}

impl From<u32> for Durability {
    fn from(replicas: u32) -> Self {
        Self::replicas(replicas)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.replicas == 1 { "" } else { "s" };
        match (self.synced, self.replicas) {
            (true, 0) => f.write_str("on the disk of the server"),
            (true, replicas) => write!(f, "on the disks of the server and of {replicas} replica{plural}"),
            (false, replicas) => write!(f, "on {replicas} replica{plural}"),
        }
    }
}

/// How far a write had got when the wait for it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// How many replicas have it.
    pub(crate) replicas: u32,
    /// Whether that is what was asked for.
    pub(crate) is_enough: bool,
}

impl Store {
    /// Admits jobs and waits until they are where they have to be, for at most `within`. The inner error: they are
    /// admitted, and how far they have got isn't known.
    ///
    /// Nobody else may use the connection meanwhile.
    pub(crate) async fn enqueue_durably(
        &self,
        nonce: Option<&str>,
        items: &[Item],
        durability: Durability,
        within: Duration,
    ) -> Result<(Admitted, Result<Reached, CallError>), CallError> {
        let name = format!("emq-durable-{:016x}", rand::random::<u64>());
        self.connection
            .command_at("CLIENT", &self.keys.completed, vec!["SETNAME".into(), name.as_str().into()])
            .await?;
        let admitted = self.enqueue(nonce, items).await?;
        Ok((admitted, self.reach(&name, durability, within).await))
    }

    async fn reach(&self, name: &str, durability: Durability, within: Duration) -> Result<Reached, CallError> {
        let key = &self.keys.completed;
        let within = within.clamp(SHORTEST, LONGEST);
        // A write that changes nothing. What the enqueue answered may have been found and not written, by an earlier
        // try on another connection: whoever has this write has everything that was written before it.
        self.connection.command("HINCRBY", key, &["count", "0"]).await?;
        let (command, args) = durability.command(within);
        let reply = self.connection.command_that_blocks(command, key, args, within + PATIENCE).await?;
        let reached = durability.read(&reply)?;
        let now = self.connection.command_at("CLIENT", key, vec!["GETNAME".into()]).await?;
        of_one_connection(name, &now, reached)
    }
}

/// What the wait said, if the connection still has the name that it was given before the write.
fn of_one_connection(name: &str, now: &Value, reached: Reached) -> Result<Reached, CallError> {
    if now.as_str().as_deref() == Some(name) {
        return Ok(reached);
    }
    Err(CallError::Unknown { source: Arc::new(std::io::Error::other("the connection was made anew meanwhile")) })
}

/// The connections on which enqueues wait, made when they are first needed.
#[derive(Debug)]
pub(crate) struct Confirmers {
    idle: Mutex<Vec<Arc<Connection>>>,
    free: Semaphore,
}

impl Default for Confirmers {
    fn default() -> Self {
        Self { idle: Mutex::default(), free: Semaphore::new(MAX_WAITING) }
    }
}

impl Confirmers {
    /// Calls with a queue on a connection that nobody else uses. `None` if all were in use for as long as `within`.
    pub(crate) async fn with<T>(
        &self,
        settings: Settings,
        queue: &QueueName,
        within: Duration,
        call: impl AsyncFnOnce(Store) -> T,
    ) -> Result<Option<T>, CallError> {
        let Ok(permit) = timeout(within, self.free.acquire()).await else { return Ok(None) };
        let _permit = permit.map_err(|_| CallError::Closed)?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::open(settings).await.map_err(no_connection)?,
        };
        let answer = call(Store::new(Arc::clone(&connection), queue.clone())).await;
        // Not if the future is dropped before: what it waits for would hold up the next.
        let mut idle = self.idle();
        if !self.free.is_closed() {
            idle.push(connection);
        }
        drop(idle);
        Ok(Some(answer))
    }

    pub(crate) fn close(&self) {
        self.free.close();
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_connection(error: ConnectError) -> CallError {
    match error {
        ConnectError::Call(error) => error,
        other => CallError::Unreachable { source: Arc::new(other) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_wait_is_held_against_what_was_asked() {
        let replicas = Durability::replicas(2);
        let reached = |durability: Durability, reply| durability.read(&reply).map(|reached| reached.is_enough).ok();
        assert_eq!(reached(replicas, Value::Integer(2)), Some(true));
        assert_eq!(reached(replicas, Value::Integer(1)), Some(false));
        let both = |here, there| Value::Array(vec![Value::Integer(here), Value::Integer(there)]);
        let synced = Durability::synced(1);
        assert_eq!(reached(synced, both(1, 1)), Some(true));
        assert_eq!(reached(synced, both(0, 5)), Some(false), "its own disk counts");
        assert_eq!(reached(synced, both(1, 0)), Some(false));
    }

    #[test]
    fn an_answer_that_no_wait_can_have_is_an_error() {
        for reply in [Value::Null, Value::Integer(-1), Value::Array(Vec::new()), Value::from("OK")] {
            assert!(Durability::replicas(1).read(&reply).is_err(), "{reply:?}");
            assert!(Durability::synced(1).read(&reply).is_err(), "{reply:?}");
        }
        assert!(Durability::synced(1).read(&Value::Integer(1)).is_err());
    }

    #[test]
    fn what_a_connection_says_that_was_made_anew_is_no_answer() {
        let reached = Reached { replicas: 1, is_enough: true };
        assert_eq!(of_one_connection("mine", &"mine".into(), reached).ok(), Some(reached));
        for name in [Value::Null, "another".into(), "".into()] {
            let error = of_one_connection("mine", &name, reached).unwrap_err();
            assert!(error.is_transient(), "{name:?}: it is asked again");
        }
    }

    #[test]
    fn a_wait_is_never_without_end() {
        let (command, args) = Durability::synced(3).command(SHORTEST);
        let args: Vec<_> = args.iter().filter_map(Value::as_string).collect();
        assert_eq!((command, args), ("WAITAOF", vec!["1".into(), "3".into(), "1".into()]));
    }
}
