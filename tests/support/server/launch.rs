//! Starting and ending the process.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::guard::{Guarded, Spawn};
use crate::resp::{self, Reply};

pub(super) const LOG: &str = "server.log";
pub(super) const CONFIG: &str = "server.conf";

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// All it takes to start the server, the first time and again.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    pub(super) unix_socket: Option<PathBuf>,
    pub(super) password: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) envs: Vec<(String, String)>,
}

/// Why a server didn't start.
#[derive(Debug)]
pub(super) enum Failure {
    PortTaken,
    Other(String),
}

#[derive(Debug)]
pub(super) struct Running {
    guard: Guarded,
    /// Disconnected once the process has ended.
    ended: Receiver<()>,
}

impl Launch {
    /// Starts the server and waits until it answers.
    pub(super) fn once(&self) -> Result<Running, Failure> {
        let deadline = Instant::now() + PATIENCE;
        let old_log = self.log().len();
        let running = self.spawn().map_err(|error| self.failure(old_log, &error))?;
        loop {
            match self.answers(running.pid()) {
                Ok(true) => return Ok(running),
                Ok(false) => {}
                Err(error) if Instant::now() > deadline => {
                    return Err(self.failure(old_log, &error));
                }
                Err(_) => {}
            }
            if Instant::now() > deadline {
                let error = io::Error::other("it doesn't become ready");
                return Err(self.failure(old_log, &error));
            }
            if running.ends_within(POLL) {
                let error = io::Error::other("it ended at once");
                return Err(self.failure(old_log, &error));
            }
        }
    }

    /// Starts the server on the port it had, waiting for the port if need be.
    pub(super) fn again(&self) -> Running {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.once() {
                Ok(running) => return running,
                Err(Failure::PortTaken) if Instant::now() < deadline => thread::sleep(POLL),
                Err(Failure::PortTaken) => panic!("someone else took port {}", self.port),
                Err(Failure::Other(why)) => panic!("{why}"),
            }
        }
    }

    fn spawn(&self) -> io::Result<Running> {
        let log = File::options().create(true).append(true).open(self.folder.join(LOG))?;
        let (alive, ended) = mpsc::channel();
        let spawn = Spawn {
            program: &self.program,
            args: std::iter::once(OsString::from(self.folder.join(CONFIG)))
                .chain(self.args.iter().map(OsString::from))
                .collect(),
            envs: self.envs.clone(),
            stderr: Stdio::from(log),
            folder: Some(&self.folder),
        };
        // The callback does nothing but own the sender until the output ends.
        let guard = Guarded::spawn(spawn, move |_| {
            let _ = alive.send(());
        })?;
        Ok(Running { guard, ended })
    }

    /// Asks whether the process that listens on the port is this server, and ready.
    fn answers(&self, pid: u32) -> io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if let Some(password) = &self.password {
            ask(&mut stream, &["AUTH", password])?;
        }
        match ask(&mut stream, &["PING"])? {
            // With an access list nobody may be let in; then this is all there is to see.
            Reply::Error(error) => Ok(error.starts_with("NOAUTH") || error.starts_with("NOPERM")),
            _ => match ask(&mut stream, &["INFO", "server"])? {
                Reply::Bulk(info) => {
                    let line = format!("process_id:{pid}\r\n");
                    Ok(String::from_utf8_lossy(&info).contains(&line))
                }
                other => Ok(matches!(other, Reply::Error(_))),
            },
        }
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.folder.join(LOG)).unwrap_or_default()
    }

    fn failure(&self, old_log: usize, error: &io::Error) -> Failure {
        let log = self.log();
        let log = String::from_utf8_lossy(log.get(old_log..).unwrap_or_default());
        if log.contains("Address already in use") {
            return Failure::PortTaken;
        }
        let program = self.program.display();
        Failure::Other(format!("{program} doesn't start: {error}\n{log}"))
    }
}

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.guard.pid()
    }

    pub(super) fn freeze(&self) -> io::Result<()> {
        self.guard.freeze()
    }

    pub(super) fn thaw(&self) -> io::Result<()> {
        self.guard.signal(Signal::CONT)
    }

    pub(super) fn kill(mut self) {
        self.guard.end(true).expect("the server can be killed");
    }

    pub(super) fn stop(self) {
        // A server that has crashed by itself is stopped as well.
        if self.guard.signal(Signal::TERM).is_ok() {
            // It may be frozen.
            let _ = self.thaw();
            assert!(self.ends_within(PATIENCE), "the server doesn't shut down");
        }
        self.kill();
    }

    fn ends_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ended.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

fn ask(stream: &mut TcpStream, args: &[&str]) -> io::Result<Reply> {
    stream.write_all(&resp::request(args))?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&chunk[..length]),
        }
        if let Some((reply, _)) = Reply::parse(&bytes)? {
            return Ok(reply);
        }
    }
}
