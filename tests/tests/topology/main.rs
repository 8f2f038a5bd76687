//! Every kind of server that a URL can name: a cluster, a primary behind Sentinel, TLS.

mod cluster;
mod jobs;
mod sentinel;
mod tls;
