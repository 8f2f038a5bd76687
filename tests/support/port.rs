//! Free ports on the loopback interface.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

/// Below the range from which Linux and macOS take the ports of outgoing connections.
/// From inside that range a connection to a dead server can be given the server's own
/// port as its source, and then talks to itself and keeps the port from the server.
const RANGE: Range<u16> = 15_000..32_000;

/// Returns a listener on a free port that this process hasn't handed out before.
pub(crate) fn listen() -> (u16, TcpListener) {
    static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    for attempt in 0..1000_u32 {
        let random = RandomState::new().hash_one((std::process::id(), attempt));
        let width = u64::from(RANGE.end - RANGE.start);
        let offset = u16::try_from(random % width).expect("a remainder below the width");
        let port = RANGE.start + offset;
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) else {
            continue;
        };
        let mut taken = TAKEN.lock().expect("no panic while locked");
        if taken.get_or_insert_with(HashSet::new).insert(port) {
            return (port, listener);
        }
    }
    panic!("no free port between {} and {}", RANGE.start, RANGE.end);
}

/// Returns a port that was free a moment ago; someone else may still take it.
pub(crate) fn free() -> u16 {
    listen().0
}
