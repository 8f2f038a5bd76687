//! emq
