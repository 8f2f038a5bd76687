//! The spelling of every key. Nothing else in the crate knows it.

use fred::types::{ClusterHash, Key};

use crate::job::{JobId, LaneName, QueueName};

/// The keys of one queue, all with the hash tag `{queue}` and so in one cluster slot.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) rows: Key,
    pub(super) pending: Key,
    pub(super) active: Key,
    pub(super) schedule: Key,
    pub(super) dead: Key,
    pub(super) parked: Key,
    pub(super) held: Key,
    pub(super) ring: Key,
    pub(super) done: Key,
    pub(super) marker: Key,
    pub(super) meta: Key,
    pub(super) claims: Key,
    pub(super) deduplication: Key,
    pub(super) completed: Key,
    pub(super) failed: Key,
    pub(super) events: Key,
    pub(super) recurring: Key,
    pub(super) records: Key,
    pub(super) control: Key,
    pub(super) root: Key,
    prefix: String,
}

impl Keys {
    pub(super) fn of(queue: &QueueName) -> Self {
        let prefix = format!("emq:{{{queue}}}:");
        let key = |name: &str| Key::from(format!("{prefix}{name}"));
        Self {
            // `rows`, `deduplication` and `records` are prefixes: a script appends an id, a key or a name to them, and
            // nothing else.
            rows: key("job:"),
            pending: key("pending"),
            active: key("active"),
            schedule: key("schedule"),
            dead: key("dead"),
            parked: key("parked"),
            held: key("held"),
            ring: key("ring"),
            done: key("done"),
            marker: key("marker"),
            meta: key("meta"),
            claims: key("claims"),
            deduplication: key("de:"),
            completed: key("metrics:completed"),
            failed: key("metrics:failed"),
            events: key("events"),
            recurring: key("repeat"),
            records: key("repeat:"),
            control: key("control"),
            // What belongs to lanes stands behind it: `lua/lib/lanes.lua` appends the rest.
            root: key(""),
            prefix,
        }
    }

    pub(super) fn row(&self, id: JobId) -> Key {
        format!("{}job:{id}", self.prefix).into()
    }

    /// Where the jobs of a lane wait; `lua/lib/lanes.lua` spells it the same way.
    pub(super) fn line(&self, lane: &LaneName) -> Key {
        format!("{}g:{}:pending", self.prefix, lane.as_str()).into()
    }

    pub(super) fn record(&self, name: &str) -> Key {
        format!("{}repeat:{name}", self.prefix).into()
    }

    pub(super) fn logs(&self, id: JobId) -> Key {
        format!("{}job:{id}:logs", self.prefix).into()
    }

    pub(super) fn result(&self, id: JobId) -> Key {
        format!("{}job:{id}:result", self.prefix).into()
    }
}

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a cluster in which a queue of this name lies.
pub(crate) fn slot_of(queue: &str) -> u16 {
    // As the server does with the hash tag alone.
    fred::util::redis_keyslot(queue.as_bytes())
}

/// Where in a cluster a plain command on this key goes: fred ignores its other ways to say so.
pub(super) fn slot(key: &[u8]) -> ClusterHash {
    ClusterHash::Custom(fred::util::redis_keyslot(key))
}

/// What the server speaks; claimed by the first peer that connects.
pub(super) const VERSION: &str = "{emq}:version";

/// The prefix of the node numbers.
pub(super) const NODES: &str = "{emq}:node:";

/// The key of one node number.
pub(super) fn node(number: u16) -> Key {
    format!("{NODES}{number}").into()
}
