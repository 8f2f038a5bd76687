//! Tests of what the other tests stand on.

mod dump;
mod process;
mod proxy;
mod raw;
mod server;
