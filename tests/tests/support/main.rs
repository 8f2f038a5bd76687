//! Tests of what the other tests stand on.

mod dump;
mod process;
mod raw;
mod server;
