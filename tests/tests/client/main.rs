//! What a client promises: to connect or say why not, to enqueue once, and to lose nothing to a bad line.

mod access;
mod connect;
mod durable;
mod enqueue;
mod enqueue_many;
mod error_texts;
mod lost_replies;
mod nodes;
mod server_away;
mod test_server;
mod under_fire;
mod warnings;
mod wire_version;

mod common;
