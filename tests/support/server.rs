//! A private Valkey or Redis server as a child process.
//!
//! Each server has a folder and a port of its own and listens on the loopback interface
//! alone. The program is the one that `EMQ_SERVER` names, else `valkey-server` or
//! `redis-server` from the path.

mod builder;
mod launch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::raw::Raw;
use launch::{Launch, Running};

pub use builder::Builder;

/// A running server; it ends, and its folder goes, when this is dropped.
///
/// All methods take `&self`, so that a test may kill the server that its tasks share.
/// If the test panics, the folder with the server's log stays, and its path is printed.
#[derive(Debug)]
pub struct Server {
    launch: Arc<Launch>,
    running: Mutex<Option<Running>>,
    folder: Option<TempDir>,
}

impl Server {
    /// Starts a server without persistence and waits until it answers.
    ///
    /// # Panics
    ///
    /// If there is no server program, or it doesn't start.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder for a server with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the address as emq takes it, with the password if there is one.
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// Returns the address of this server through another port, a proxy's for example.
    pub fn url_at(&self, port: u16) -> String {
        match self.password() {
            Some(password) => format!("redis://:{password}@127.0.0.1:{port}"),
            None => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// Returns the path of the unix socket.
    ///
    /// # Panics
    ///
    /// If the builder wasn't asked for one.
    pub fn unix_socket(&self) -> &Path {
        let path = self.launch.unix_socket.as_deref();
        path.expect("call `unix_socket` on the builder first")
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.launch.port
    }

    /// Returns the password of the default user.
    pub fn password(&self) -> Option<&str> {
        self.launch.password.as_deref()
    }

    /// Returns the server's folder, with its data and `server.log`.
    pub fn folder(&self) -> &Path {
        &self.launch.folder
    }

    /// Returns the path of the server program.
    pub fn program(&self) -> &Path {
        &self.launch.program
    }

    /// Returns the process id of the server.
    ///
    /// # Panics
    ///
    /// If it doesn't run.
    pub fn pid(&self) -> u32 {
        self.with(Running::pid)
    }

    /// Kills the server, as a crash would, and waits until it is gone. Its data stay.
    pub async fn kill(&self) {
        self.end(Running::kill).await;
    }

    /// Asks the server to shut down and waits until it has. Its data stay.
    ///
    /// # Panics
    ///
    /// If it doesn't shut down in time.
    pub async fn stop(&self) {
        self.end(Running::stop).await;
    }

    /// Starts the server again with the same port and folder, and waits until it answers.
    /// One that still runs is stopped first.
    ///
    /// # Panics
    ///
    /// If it doesn't start.
    pub async fn restart(&self) {
        self.stop().await;
        let launch = Arc::clone(&self.launch);
        let running = spawn_blocking(move || launch.again()).await;
        *self.lock() = Some(running.expect("the server starts again"));
    }

    /// Stops the server's process without ending it: connections stay open, and silent.
    ///
    /// # Panics
    ///
    /// If it doesn't run.
    pub fn freeze(&self) {
        self.with(Running::freeze).expect("the server runs");
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    ///
    /// If it doesn't run.
    pub fn thaw(&self) {
        self.with(Running::thaw).expect("the server runs");
    }

    /// Returns a section of the server's own report, such as `memory` or `clients`.
    ///
    /// # Panics
    ///
    /// If the server doesn't answer.
    pub async fn info(&self, section: &str) -> BTreeMap<String, String> {
        let reply = Raw::connect(self).await.command(&["INFO", section]).await;
        let pairs = reply.text().lines().filter_map(|line| line.split_once(':'));
        pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    fn with<T>(&self, look: impl FnOnce(&Running) -> T) -> T {
        look(self.lock().as_ref().expect("the server runs"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn end(&self, how: fn(Running)) {
        let running = self.lock().take();
        if let Some(running) = running {
            let ended = spawn_blocking(move || how(running)).await;
            ended.expect("the server ends");
        }
    }

    fn new(launch: Launch, running: Running, folder: TempDir) -> Self {
        Self { launch: Arc::new(launch), running: Mutex::new(Some(running)), folder: Some(folder) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let running = self.lock().take();
        if !std::thread::panicking() {
            return;
        }
        if let Some(running) = running {
            running.kill();
        }
        if let Some(folder) = self.folder.take() {
            let log: PathBuf = folder.keep().join(launch::LOG);
            eprintln!("the server's log is kept in {}", log.display());
        }
    }
}
