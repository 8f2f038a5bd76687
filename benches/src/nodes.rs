//! A private server, or a Cluster of some, for one run.

use std::time::{Duration, Instant};

use emq::{BoxError, Client};
use support::{Raw, Server};

use crate::{
    jobs::QUEUE,
    meter::{Work, own_cpu},
    settings::Settings,
};

const SLOTS: usize = 16_384;

/// Servers that nobody else uses, and that end with this.
#[derive(Debug)]
pub(crate) struct Nodes {
    servers: Vec<Server>,
    is_cluster: bool,
}

impl Nodes {
    /// A server by itself.
    pub(crate) async fn alone(settings: &Settings) -> Self {
        Self { servers: vec![node(settings, false).await], is_cluster: false }
    }

    /// A Cluster of so many primaries, which share the slots.
    pub(crate) async fn cluster(settings: &Settings, count: usize) -> Self {
        let mut servers = Vec::with_capacity(count);
        for _ in 0..count {
            servers.push(node(settings, true).await);
        }
        for (n, server) in servers.iter().enumerate() {
            let mut command = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
            command.extend((n * SLOTS / count..(n + 1) * SLOTS / count).map(|slot| slot.to_string()));
            Raw::connect(server).await.command(&command).await;
            let mut first = Raw::connect(&servers[0]).await;
            first.line(&format!("CLUSTER MEET 127.0.0.1 {}", server.port())).await;
        }
        let nodes = Self { servers, is_cluster: true };
        while !nodes.is_formed().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        nodes
    }

    async fn is_formed(&self) -> bool {
        for server in &self.servers {
            let info = Raw::connect(server).await.line("CLUSTER INFO").await.text().to_owned();
            let size = format!("cluster_size:{}\r", self.servers.len());
            if !(info.contains("cluster_state:ok") && info.contains(&size)) {
                return false;
            }
        }
        true
    }

    /// A client that has divided the queue of the benches.
    pub(crate) async fn client(&self, partitions: u16) -> Result<Client, BoxError> {
        let scheme = if self.is_cluster { "redis-cluster" } else { "redis" };
        let url = format!("{scheme}://127.0.0.1:{}", self.servers[0].port());
        Ok(Client::builder(url).partitioned(QUEUE, partitions).connect().await?)
    }

    /// How many clients are connected, and how many of them wait.
    pub(crate) async fn connections(&self) -> (usize, usize) {
        let (mut all, mut waiting) = (0, 0);
        for server in &self.servers {
            let list = Raw::connect(server).await.line("CLIENT LIST").await.text().to_owned();
            // The one that asks isn't counted.
            all += list.lines().filter(|line| !line.trim().is_empty()).count() - 1;
            waiting += list.lines().filter(|line| line.contains("flags=b")).count();
        }
        (all, waiting)
    }

    /// Begins to count what a run costs.
    pub(crate) async fn meter(&self) -> NodesMeter {
        let mut nodes = Vec::with_capacity(self.servers.len());
        for server in &self.servers {
            let mut raw = Raw::connect(server).await;
            let before = Work::read(&mut raw).await;
            nodes.push((raw, before));
        }
        NodesMeter { nodes, own: own_cpu(), begun: Instant::now() }
    }
}

async fn node(settings: &Settings, is_cluster: bool) -> Server {
    let mut builder = Server::builder();
    if is_cluster {
        builder = builder.config("cluster-enabled", "yes");
    }
    for (name, value) in &settings.config {
        builder = builder.config(name, value);
    }
    builder.start().await
}

/// Counts from its start to its end.
#[derive(Debug)]
pub(crate) struct NodesMeter {
    nodes: Vec<(Raw, Work)>,
    own: Duration,
    begun: Instant,
}

/// What one run took, of each node.
#[derive(Debug)]
pub(crate) struct Spent {
    pub(crate) took: Duration,
    pub(crate) client_cpu: Duration,
    pub(crate) nodes: Vec<Work>,
}

impl NodesMeter {
    pub(crate) async fn stop(self) -> Spent {
        let (took, client_cpu) = (self.begun.elapsed(), own_cpu() - self.own);
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (mut raw, before) in self.nodes {
            nodes.push(Work::read(&mut raw).await.since(&before));
        }
        Spent { took, client_cpu, nodes }
    }
}

impl Spent {
    pub(crate) fn server_cpu(&self) -> Duration {
        self.nodes.iter().map(|work| work.cpu).sum()
    }

    /// Of the node that had the most to do.
    pub(crate) fn busiest_cpu(&self) -> Duration {
        self.nodes.iter().map(|work| work.cpu).max().unwrap_or_default()
    }

    /// Scripts and waits.
    pub(crate) fn calls(&self) -> u64 {
        let waits = |work: &Work| work.commands.get("bzpopmin").map_or(0, |(calls, _)| *calls);
        self.nodes.iter().map(|work| work.calls() + waits(work)).sum()
    }

    /// All commands, those inside of scripts among them.
    pub(crate) fn commands(&self) -> u64 {
        self.nodes.iter().flat_map(|work| work.commands.values()).map(|(calls, _)| calls).sum()
    }
}
