//! One call of a script: sent, repeated where that helps, and given up in bounded time.

use std::time::Duration;

use fred::{
    interfaces::{ClientLike as _, LuaInterface as _},
    types::{CustomCommand, Key, Value},
};
use tokio::time::Instant;

use super::{
    connection::Connection,
    error::{CallError, classify},
    keys::slot,
    script::{Invocation, MAX_WAIT},
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
        self.check_usable()?;
        let command = CustomCommand::new_static(name, slot(key.as_bytes()), false);
        let args = std::iter::once(key.as_bytes().into()).chain(args.iter().map(|arg| Value::from(*arg))).collect();
        self.client().custom::<Value, Value>(command, args).await.map(drop).map_err(classify)
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
