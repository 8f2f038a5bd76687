//! Ids of jobs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emq::fuzz::id(data));
