//! One call of a script: sent, repeated where that helps, and given up in bounded time.

use std::time::Duration;

use fred::{
    interfaces::{ClientLike as _, LuaInterface as _},
    types::{CustomCommand, Key, Value, config::Options},
};
use tokio::time::Instant;

use super::{
    connection::Connection,
    error::{CallError, classify},
    keys::slot,
    script::{Invocation, MAX_WAIT, number},
};

/// The wait before the first repeat, or up to half less; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The longest wait between two repeats.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// What the server answered, and whether an earlier try of the same call may have been carried out.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    pub(super) repeated: bool,
}

impl Connection {
    /// Sends a script until it is answered or [`Settings::retry_for`](super::Settings) is over.
    ///
    /// Every script of ours may be repeated; see the module `store`.
    pub(super) async fn call(&self, invocation: Invocation) -> Result<Answer, CallError> {
        self.call_until(invocation, Instant::now() + self.settings().retry_for.min(MAX_WAIT)).await
    }

    /// Sends a script until it is answered or `deadline` has passed.
    pub(super) async fn call_until(&self, invocation: Invocation, deadline: Instant) -> Result<Answer, CallError> {
        // Bounds what waits inside of fred, whose own bounded queue ends its router when it is full.
        let _permit = self.permit().await?;
        let mut repeated = false;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.send(&invocation).await {
                Ok(value) => return Ok(Answer { value, repeated }),
                Err(error) => error,
            };
            repeated |= matches!(error, CallError::Unknown { .. });
            let now = Instant::now();
            if !error.is_transient() || self.is_closed() || now >= deadline {
                return Err(error);
            }
            tracing::debug!(call = invocation.script.name, %error, "repeating");
            // By chance: calls that one cut has struck would else come again together, and be struck together.
            let wait = pause.mul_f64(rand::random_range(0.5..=1.0));
            tokio::time::sleep_until((now + wait).min(deadline)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends a plain command once, for what is no transition: nothing is lost if it isn't carried out.
    pub(super) async fn command(&self, name: &'static str, key: &Key, args: &[&str]) -> Result<(), CallError> {
        let args = std::iter::once(key.as_bytes().into()).chain(args.iter().map(|arg| Value::from(*arg))).collect();
        self.command_at(name, key, args).await.map(drop)
    }

    /// Sends a command that names no key once, to the node that has this one.
    pub(super) async fn command_at(&self, name: &'static str, key: &Key, args: Vec<Value>) -> Result<Value, CallError> {
        self.check_usable()?;
        let command = CustomCommand::new_static(name, slot(key.as_bytes()), false);
        self.client().custom(command, args).await.map_err(classify)
    }

    /// The same for a command that is answered late. The connection is made anew if that takes longer than `patience`.
    pub(super) async fn command_that_blocks(
        &self,
        name: &'static str,
        key: &Key,
        args: Vec<Value>,
        patience: Duration,
    ) -> Result<Value, CallError> {
        self.check_usable()?;
        let options = Options { timeout: Some(patience), ..Options::default() };
        let command = CustomCommand::new_static(name, slot(key.as_bytes()), true);
        self.client().with_options(&options).custom(command, args).await.map_err(|error| {
            let error = classify(error);
            if error.is_of_a_replica() {
                self.leave_replica();
            } else if matches!(error, CallError::Unknown { .. }) && self.remake() {
                // After a timeout of the client's own, later blocking calls on this connection would time out as well.
                tracing::warn!(command = name, "the server doesn't answer; the connection is made anew");
            }
            error
        })
    }

    /// Sends a script once, which the server comes to after a command that blocks. No answer within `patience` is left to
    /// that command to deal with.
    pub(super) async fn call_behind(
        &self,
        key: &Key,
        invocation: Invocation,
        patience: Duration,
    ) -> Result<Value, CallError> {
        self.check_usable()?;
        let Invocation { script, keys, args } = invocation;
        let options = Options { timeout: Some(patience), ..Options::default() };
        // As such it has no options of its own.
        let command = CustomCommand::new_static("EVALSHA", slot(key.as_bytes()), false);
        let head = [script.hash.into(), number(keys.len() as u64)];
        let keys = keys.iter().map(|key| key.as_bytes().into());
        let args: Vec<Value> = head.into_iter().chain(keys).chain(args).collect();
        self.client().with_options(&options).custom(command, args).await.map_err(classify)
    }

    async fn send(&self, invocation: &Invocation) -> Result<Value, CallError> {
        self.check_usable()?;
        let Invocation { script, keys, args } = invocation;
        let reply = self.client().evalsha(script.hash, keys.clone(), args.clone()).await;
        let reply = match reply.map_err(classify) {
            // The server hasn't run anything. EVAL with the text costs one round trip, and loads the script on the
            // one node that needs it.
            Err(error) if error.is_code("NOSCRIPT") => {
                self.client().eval(script.source, keys.clone(), args.clone()).await.map_err(classify)
            }
            other => other,
        };
        self.observe(&reply);
        reply
    }
}
