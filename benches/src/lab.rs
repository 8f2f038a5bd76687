//! A private server for one run.

use emq::{BoxError, Client};
use support::{Raw, Server};

use crate::{meter::Meter, settings::Settings};

/// A server that nobody else uses, and that ends with this.
#[derive(Debug)]
pub(crate) struct Lab {
    server: Server,
}

impl Lab {
    pub(crate) async fn start(settings: &Settings) -> Self {
        let mut builder = Server::builder();
        for (name, value) in &settings.config {
            builder = builder.config(name, value);
        }
        Self { server: builder.start().await }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) async fn client(&self) -> Result<Client, BoxError> {
        Ok(Client::connect(self.url()).await?)
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw::connect(&self.server).await
    }

    /// Begins to count what a run costs.
    pub(crate) async fn meter(&self) -> Meter {
        Meter::start(self.raw().await).await
    }

    /// What the server says of itself: its name, version and allocator.
    pub(crate) async fn describe(&self) -> String {
        let info = self.server.info("all").await;
        let of = |name: &str| info.get(name).map_or("?", |value| value.trim());
        let (name, version) = match info.get("valkey_version") {
            Some(version) => ("Valkey", version.trim()),
            None => ("Redis", of("redis_version")),
        };
        format!("{name} {version} ({})", of("mem_allocator"))
    }

    /// How many bytes the server's data takes.
    pub(crate) async fn memory(&self) -> f64 {
        // What fragmentation adds comes and goes with the allocator; `used_memory` is what was asked for.
        let info = self.server.info("memory").await;
        info.get("used_memory").and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(f64::NAN)
    }
}
