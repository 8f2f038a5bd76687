use fred::types::Value;

use super::{Store, error::CallError};

impl Store {
    /// Whether this queue has nothing that a worker or time could do anything to: no job but dead letters, no recurring
    /// job. One command, which is sent once, and the least that a server can be asked.
    pub(crate) async fn is_quiet(&self) -> Result<bool, CallError> {
        let keys = &self.keys;
        let places =
            [&keys.active, &keys.schedule, &keys.pending, &keys.recurring, &keys.held, &keys.parked, &keys.ring];
        let args = places.map(|key| Value::from(key.as_bytes())).into();
        let there = self.connection.command_at("EXISTS", &keys.active, args).await?;
        Ok(there.as_i64() == Some(0))
    }
}
