//! What each script writes, and what it leaves alone: one file per script, and one per promise that
//! several of them keep.

mod admit;
mod bury;
mod cancel;
mod claim;
mod complete;
mod counts;
mod drain_lane;
mod enqueue;
mod exchange;
mod extend;
mod fire;
mod get;
mod hold;
mod lane;
mod lanes;
mod limits;
mod list;
mod list_lanes;
mod log;
mod obliterate;
mod partitions;
mod pause;
mod progress;
mod promote;
mod purge;
mod reap;
mod reassign;
mod recurring;
mod release;
mod remove;
mod resume;
mod retry;
mod revive;
mod snooze;
mod state;
mod trim;
mod tune;
mod unique;
mod update;

mod bad_states;
mod bytes;
mod fairness;
mod fencing;
mod known_faults;
mod many;
mod order;
mod out_of_memory;
mod paused;
mod peer;
mod read_only;
mod tampered;
mod times;

mod scene;
