//! URLs of servers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emq::fuzz::url(data));
