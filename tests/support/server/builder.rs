//! The options of a server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::Server;
use super::launch::{CONFIG, Failure, LOG, Launch};
use crate::{Clock, port};

/// How to start a server; made by [`Server::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    program: Option<PathBuf>,
    settings: Vec<String>,
    password: Option<String>,
    users: Vec<String>,
    unix_socket: bool,
    args: Vec<String>,
    envs: Vec<(String, String)>,
}

impl Builder {
    /// Adds a line to the configuration file. The value is written as it is: quote it where
    /// the file's grammar wants that, as in `.config("save", "\"\"")`.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name} {value}"));
        self
    }

    /// Logs every write to a file, so that the data outlive a restart, and a kill.
    pub fn append_only(self, on: bool) -> Self {
        self.config("appendonly", if on { "yes" } else { "no" })
    }

    /// Makes the server a replica of another, whose password it uses.
    pub fn replica_of(self, primary: &Server) -> Self {
        let this = self.config("replicaof", &format!("127.0.0.1 {}", primary.port()));
        match primary.password() {
            Some(password) => this.config("masterauth", password),
            None => this,
        }
    }

    /// Asks clients for a password.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a user to the server's access list, in its own grammar: `alice on >secret ~* +@all`.
    pub fn user(mut self, rule: &str) -> Self {
        self.users.push(format!("user {rule}"));
        self
    }

    /// Listens on a unix socket, too.
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Adds an argument to the command, after the configuration file: `--sentinel` for example.
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Gives the server a clock that the test can move.
    pub fn clock(mut self, clock: &Clock) -> Self {
        self.envs.extend(clock.envs());
        self
    }

    /// Runs this program instead of the one that `EMQ_SERVER` or the path names.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    ///
    /// If there is no server program, or it doesn't start.
    pub async fn start(self) -> Server {
        let started = spawn_blocking(move || self.start_blocking()).await;
        match started.expect("starting a server doesn't panic") {
            Ok(server) => server,
            Err(why) => panic!("{why}"),
        }
    }

    fn start_blocking(&self) -> Result<Server, String> {
        let program = self
            .program
            .clone()
            .or_else(find_program)
            .ok_or("no valkey-server or redis-server: run `script/bootstrap`, or set EMQ_SERVER to its path")?;
        for _ in 0..10 {
            let (launch, folder) = self.prepare(&program).map_err(|error| error.to_string())?;
            match launch.once() {
                Ok(running) => return Ok(Server::new(launch, running, folder)),
                Err(Failure::PortTaken) => {}
                Err(Failure::Other(why)) => return Err(why),
            }
        }
        Err("every free port is taken by someone else in time".into())
    }

    fn prepare(&self, program: &Path) -> io::Result<(Launch, TempDir)> {
        // A short name: the path of a unix socket has room for about a hundred bytes.
        let folder = tempfile::Builder::new().prefix("emq-").tempdir()?;
        // Canonical, since the temporary folder of macOS is behind a link.
        let path = folder.path().canonicalize()?;
        let launch = Launch {
            program: program.to_owned(),
            port: port::free(),
            unix_socket: self.unix_socket.then(|| path.join("socket")),
            password: self.password.clone(),
            folder: path,
            args: self.args.clone(),
            envs: self.envs.clone(),
        };
        self.write_config(&launch)?;
        Ok((launch, folder))
    }

    fn write_config(&self, launch: &Launch) -> io::Result<()> {
        let mut text = format!(
            "bind 127.0.0.1\nport {}\ndir \"{}\"\nlogfile \"{}\"\nsave \"\"\n\
             repl-diskless-sync-delay 0\n",
            launch.port,
            launch.folder.display(),
            launch.folder.join(LOG).display(),
        );
        if let Some(socket) = &launch.unix_socket {
            writeln!(text, "unixsocket \"{}\"", socket.display()).expect("a string grows");
        }
        if let Some(password) = &self.password {
            writeln!(text, "requirepass \"{password}\"").expect("a string grows");
        }
        // Last, so that a test can replace what is above.
        for line in self.users.iter().chain(&self.settings) {
            writeln!(text, "{line}").expect("a string grows");
        }
        fs::write(launch.folder.join(CONFIG), text)
    }
}

fn find_program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("EMQ_SERVER").filter(|path| !path.is_empty()) {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    ["valkey-server", "redis-server"]
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|candidate| candidate.is_file())
}
