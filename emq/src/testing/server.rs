use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, timeout},
};

/// How long a server may take to answer.
const START: Duration = Duration::from_secs(10);

/// A private server for a test: a child process that listens on a Unix socket in a folder of its own, and ends when this
/// is dropped.
///
/// It runs the program in the variable `EMQ_SERVER`, or else `valkey-server` or `redis-server` from the `PATH`.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use emq::{Client, testing::TestServer};
///
/// let server = TestServer::start().await?;
/// let client = Client::connect(server.url()).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TestServer {
    // Before the folder: the process must have been killed when its folder is removed.
    _process: Child,
    socket: PathBuf,
    _folder: TempDir,
}

impl TestServer {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no server program, or it doesn't come up within 10 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the server.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), emq::testing::ServerError> {
    /// let server = emq::testing::TestServer::start().await?;
    /// # Ok(()) }
    /// ```
    pub async fn start() -> Result<Self, ServerError> {
        let folder = TempDir::with_prefix("emq-server-")?;
        let socket = folder.path().join("server.sock");
        let mut process = spawn(folder.path(), &socket)?;
        let deadline = Instant::now() + START;
        while UnixStream::connect(&socket).await.is_err() {
            // Until the socket is there, nothing can be awaited but the end of the process.
            if let Ok(status) = timeout(Duration::from_millis(5), process.wait()).await {
                return Err(ServerError::Ended { status: status?.to_string() });
            }
            if Instant::now() > deadline {
                return Err(ServerError::Silent);
            }
        }
        Ok(Self { _process: process, socket, _folder: folder })
    }

    /// Its URL, for [`Client::connect`](crate::Client::connect).
    ///
    /// ```no_run
    /// # fn example(server: emq::testing::TestServer) {
    /// println!("{}", server.url());
    /// # }
    /// ```
    #[must_use]
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }
}

fn spawn(folder: &Path, socket: &Path) -> Result<Child, ServerError> {
    let named = std::env::var_os("EMQ_SERVER").map(PathBuf::from);
    let programs = match named {
        Some(program) => vec![program],
        None => vec!["valkey-server".into(), "redis-server".into()],
    };
    for program in programs {
        let started = Command::new(&program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(socket)
            .arg("--dir")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        match started {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return Ok(other?),
        }
    }
    Err(ServerError::NoProgram)
}

/// Why a private server didn't start.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use emq::testing::{ServerError, TestServer};
///
/// if let Err(ServerError::NoProgram) = TestServer::start().await {
///     println!("skipped: there is no server");
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no server program.
    #[error("no valkey-server or redis-server was found; install one, or set EMQ_SERVER to its path")]
    NoProgram,
    /// It ended at once.
    #[error("the server ended at once: {status}")]
    Ended {
        /// How.
        status: String,
    },
    /// It never listened.
    #[error("the server didn't listen within 10 s")]
    Silent,
    /// It couldn't be started.
    #[error("the server can't be started: {0}")]
    Io(#[from] io::Error),
}
