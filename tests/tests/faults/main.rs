//! Worker processes that are killed, frozen and told to end.

mod crash_loop;
mod freeze;
mod kill;
mod office;
mod phases;
mod recurring;
mod start_stop;
mod terminate;
mod twins;
