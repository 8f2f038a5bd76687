//! Replies of the server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emq::fuzz::reply(data));
