//! Every kind of server that a URL can name: a cluster, a primary behind Sentinel, TLS.

mod cluster;
mod failover;
mod jobs;
mod load;
mod partitions;
mod resharding;
mod sentinel;
mod tls;
