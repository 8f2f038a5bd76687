//! What each script writes, and what it leaves alone: one file per script, and one per promise that
//! several of them keep.

mod bury;
mod claim;
mod complete;
mod counts;
mod enqueue;
mod extend;
mod get;
mod lanes;
mod list;
mod promote;
mod reap;
mod release;
mod remove;
mod retry;
mod revive;
mod snooze;
mod state;
mod trim;
mod unique;

mod bad_states;
mod bytes;
mod fencing;
mod known_faults;
mod many;
mod order;
mod out_of_memory;
mod read_only;
mod tampered;
mod times;

mod scene;
