//! Worker processes that are killed, frozen and told to end.

mod crash_loop;
mod freeze;
mod kill;
mod office;
mod recurring;
mod terminate;
mod twins;
