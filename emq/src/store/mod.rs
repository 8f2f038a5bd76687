//! The only code that talks to the server: the keys, the scripts, and one file per transition.
//!
//! fred stands behind this module. What its defaults would lose or double is set right in `connection`; what its errors
//! mean is decided in `error`. Every call may be repeated: ids are minted before the first try, settling is fenced by a
//! token, and a claim names its request. That is why a lost reply is never more than a repeat.

mod beat;
mod bury;
mod call;
mod cancel;
mod claim;
mod complete;
mod connection;
mod counts;
mod drain_lane;
mod durable;
mod enqueue;
mod error;
mod exchange;
mod exchange_plain;
mod extend;
mod fire;
mod get;
mod hold;
mod keys;
mod lane;
mod limits;
mod list;
mod list_lanes;
mod log;
mod logs;
mod node;
mod obliterate;
mod partitions;
mod pause;
mod progress;
mod promote;
mod purge;
mod quiet;
mod rate;
mod reap;
mod reassign;
mod recurring;
mod release;
mod remove;
mod reply;
mod resume;
mod retry;
mod revive;
mod script;
mod server;
mod settled;
mod snooze;
mod state;
mod subscriber;
mod trim;
mod tune;
mod update;
mod wait;

#[cfg(test)]
mod contract;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

use std::sync::Arc;

use self::keys::Keys;
pub(crate) use self::{
    beat::Beat,
    claim::ClaimCall,
    complete::{Done, MAX_COMPLETIONS, are_plain},
    connection::{Connection, Settings, patiently},
    durable::{Confirmers, Reached},
    enqueue::{Admit, Admitted, Due, Item},
    exchange_plain::MOST_PLAIN,
    extend::Extend,
    fire::{Fired, Run, Turn},
    keys::{SLOTS, slot_of},
    node::{NODE_TTL, Node},
    recurring::{Definition, Record, Template},
    subscriber::{Listening, Notice, Subscriber},
    tune::Setting,
    update::Change,
    wait::Waiter,
};
pub use self::{
    cancel::Cancelled,
    claim::{Batch, Claimed, Lease},
    counts::Counts,
    drain_lane::LaneDrained,
    durable::Durability,
    error::{CallError, ConnectError},
    extend::Extended,
    get::Stored,
    lane::LaneState,
    limits::Limits,
    list::{Listed, Place},
    list_lanes::ListedLane,
    log::MAX_LOG_LINES,
    promote::Promoted,
    rate::Rate,
    reap::Reaped,
    reassign::Reassigned,
    recurring::Upserted,
    remove::Removed,
    revive::Revived,
    settled::Settled,
    state::JobState,
    trim::{Keep, Trimmed},
    update::Updated,
};
use crate::job::QueueName;

/// The most jobs that one script call takes or hands out.
pub(crate) const MAX_BATCH: usize = 1_000;

/// One queue on one connection: a method per transition.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    connection: Arc<Connection>,
    keys: Arc<Keys>,
    name: QueueName,
}

impl Store {
    pub(crate) fn new(connection: Arc<Connection>, name: QueueName) -> Self {
        Self { connection, keys: Arc::new(Keys::of(&name)), name }
    }

    pub(crate) fn name(&self) -> &QueueName {
        &self.name
    }

    /// The channel on which transitions tell what became of jobs.
    pub(crate) fn events_channel(&self) -> String {
        String::from_utf8_lossy(self.keys.events.as_bytes()).into_owned()
    }

    /// The channel on which workers are told something.
    pub(crate) fn control_channel(&self) -> String {
        String::from_utf8_lossy(self.keys.control.as_bytes()).into_owned()
    }
}
