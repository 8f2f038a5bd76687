//! The worker against a real server, through the public interface alone.

mod beat;
mod cancel;
mod claiming;
mod clock;
mod control;
mod declared;
mod deploy;
mod errand;
mod events;
mod hostile;
mod idle;
mod leases;
mod panics;
mod patience;
mod poison;
mod recurring;
mod refused;
mod restart;
mod results;
mod retries;
mod runtime;
mod settling;
mod shutdown;
mod stats;
mod stuck;
mod waiting;
