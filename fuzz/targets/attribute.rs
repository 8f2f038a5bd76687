//! What people write after `#[job`, and the items that they write it on.
#![no_main]
#![allow(dead_code)]

#[path = "../../emq-macros/src/attr/mod.rs"]
mod attr;
#[path = "../../emq-macros/src/derive.rs"]
mod derive;
#[path = "../../emq-macros/src/duration.rs"]
mod duration;
#[path = "../../emq-macros/src/errors.rs"]
mod errors;
#[path = "../../emq-macros/src/expand/mod.rs"]
mod expand;
#[path = "../../emq-macros/src/fuzz.rs"]
mod fuzz;
#[path = "../../emq-macros/src/names.rs"]
mod names;
#[path = "../../emq-macros/src/signature/mod.rs"]
mod signature;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::attribute(data));
