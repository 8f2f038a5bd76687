//! Recurring jobs: when their slots are, and what an operator does with them.
//!
//! What a slot is, and which slots run, is computed here without a server. The slot's job comes to be in `lua/fire.lua`;
//! the beat of a worker calls it (`worker/recurring.rs`).

#[cfg(feature = "cron")]
mod cron;
mod error;
mod handle;
mod policy;
mod schedule;
mod upsert;

pub use self::{
    error::RecurringError,
    handle::{Recurring, RecurringJob},
    policy::{MAX_BACKFILL, MISSED_AFTER, Missed, Overlap, Recurrence},
    schedule::{Schedule, ScheduleError},
    upsert::Upsert,
};
pub(crate) use self::{
    policy::{Due, due},
    schedule::system_time,
    upsert::{How, register},
};
