//! Macros of emq: see the docs of `emq::job`.
