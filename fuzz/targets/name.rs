//! Names of queues, and deduplication keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emq::fuzz::name(data));
