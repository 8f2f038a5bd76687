//! The Snowflake node number of a client: configured, or leased from the server.
//!
//! Two clients with one number that mint in one millisecond can make the same id, and the second job would be taken for
//! a duplicate of the first. While a number isn't surely this client's own, its rows carry a nonce that tells.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    connection::Connection,
    error::CallError,
    keys,
    reply::{unexpected, word},
    script::{Script, millis, number, script},
};

/// How long a number stays taken after its client was last heard of, unless set. It is renewed three times as often.
pub(crate) const NODE_TTL: Duration = Duration::from_secs(60);

/// How many numbers there are: ten bits.
const NUMBERS: u16 = 1_024;

pub(super) static LEASE: Script<1, 3> = script!("lease_node");
pub(super) static RENEW: Script<1, 2> = script!("renew_node");
pub(super) static RETURN: Script<1, 1> = script!("return_node");

/// A client's node number, and whether it is surely the client's own.
#[derive(Debug)]
pub(crate) struct Node {
    /// Tells this client's rows and claims of numbers from those of others.
    holder: String,
    ttl: Duration,
    current: Mutex<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    number: u16,
    /// Until when nobody else can have the number; `None` if it is configured.
    ours_until: Option<Instant>,
}

impl Node {
    /// The number that the user answers for.
    pub(crate) fn configured(number: u16) -> Arc<Self> {
        Arc::new(Self::new(NODE_TTL, Current { number: number % NUMBERS, ours_until: None }))
    }

    /// A number leased from the server, and renewed for as long as the node is held.
    pub(crate) async fn leased(connection: &Arc<Connection>, ttl: Duration) -> Result<Arc<Self>, CallError> {
        let number = rand::random_range(0..NUMBERS);
        let node = Arc::new(Self::new(ttl, Current { number, ours_until: Some(Instant::now()) }));
        match node.lease(connection).await {
            // A worker has to get in to drain the queue that fills the server.
            Err(error) if error.is_code("OOM") => {
                tracing::warn!(%error, "no node number can be leased; minting with a shared one and a nonce");
            }
            leased => leased?,
        }
        tokio::spawn(keep(ttl / 3, Arc::downgrade(&node), Arc::downgrade(connection)));
        Ok(node)
    }

    fn new(ttl: Duration, current: Current) -> Self {
        Self { holder: format!("{:016x}", rand::random::<u64>()), ttl, current: Mutex::new(current) }
    }

    /// The number to mint with, and the nonce for the row if another client may have the same number.
    pub(crate) fn identity(&self) -> (u16, Option<&str>) {
        let current = self.current();
        let ours = current.ours_until.is_none_or(|until| Instant::now() < until);
        (current.number, (!ours).then_some(self.holder.as_str()))
    }

    fn current(&self) -> Current {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, current: Current) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    async fn lease(&self, connection: &Connection) -> Result<(), CallError> {
        let now = Instant::now();
        let first = number(rand::random_range(0..NUMBERS));
        let call = LEASE.with([keys::NODES.into()], [self.holder.as_str().into(), millis(self.ttl), first]);
        let value = connection.call(call).await?.value;
        let leased = value.as_i64().ok_or_else(|| unexpected("lease_node", &value))?;
        match u16::try_from(leased) {
            Ok(number) => self.set(Current { number, ours_until: Some(now + self.ttl) }),
            // All are taken: the random number it began with, and a nonce, until one is free.
            Err(_) => tracing::warn!("all {NUMBERS} node numbers are taken; minting with a shared one and a nonce"),
        }
        Ok(())
    }

    async fn renew(&self, connection: &Connection) -> Result<(), CallError> {
        let current = self.current();
        let now = Instant::now();
        let call = RENEW.with([keys::node(current.number)], [self.holder.as_str().into(), millis(self.ttl)]);
        match word("renew_node", &connection.call(call).await?.value)?.as_str() {
            "OK" => {
                self.set(Current { ours_until: Some(now + self.ttl), ..current });
                Ok(())
            }
            // It ran out, or the server lost it. What was minted since then carried a nonce.
            "LOST" => self.lease(connection).await,
            other => Err(unexpected("renew_node", &other.into())),
        }
    }

    /// Gives a leased number back, so that it needn't run out.
    pub(crate) async fn give_back(&self, connection: &Connection) -> Result<(), CallError> {
        let current = self.current();
        if current.ours_until.is_none() {
            return Ok(());
        }
        self.set(Current { ours_until: Some(Instant::now()), ..current });
        let call = RETURN.with([keys::node(current.number)], [self.holder.as_str().into()]);
        match word("return_node", &connection.call(call).await?.value)?.as_str() {
            "OK" | "LOST" => Ok(()),
            other => Err(unexpected("return_node", &other.into())),
        }
    }
}

async fn keep(every: Duration, node: Weak<Node>, connection: Weak<Connection>) {
    let mut beat = tokio::time::interval(every);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beat.tick().await;
    loop {
        beat.tick().await;
        let (Some(node), Some(connection)) = (node.upgrade(), connection.upgrade()) else { return };
        if connection.is_closed() {
            return;
        }
        if let Err(error) = node.renew(&connection).await {
            tracing::warn!(%error, "the node number can't be renewed; ids carry a nonce until it can");
        }
    }
}
