//! Child processes to kill, freeze and terminate: the test binary runs itself again.
//!
//! A test function doubles as the main function of the child. It does nothing unless
//! [`in_role`] says that it was started for that:
//!
//! ```
//! use support::{child, event, in_role};
//!
//! #[tokio::test]
//! async fn worker_main() {
//!     if !in_role("worker_main") {
//!         return;
//!     }
//!     event("ready");
//!     std::future::pending::<()>().await;
//! }
//!
//! #[tokio::test]
//! async fn a_killed_worker_loses_nothing() {
//!     let mut worker = child("worker_main", &[("EMQ_URL", "redis://…")]);
//!     worker.wait_line("ready").await;
//!     worker.kill().await;
//! }
//! ```

use std::env;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::guard::{Guarded, Spawn};

const ROLE: &str = "EMQ_TEST_ROLE";
const MARK: &str = ":: ";
const PATIENCE: Duration = Duration::from_secs(60);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned, or exited with this code.
    Code(i32),
    /// A signal with this number ended it.
    Signal(i32),
}

impl Ended {
    /// Returns whether the test function in the child returned without a panic.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Reads the status of the shell around the child, which has no signals but 128 and more.
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code @ 129..), _) => Self::Signal(code - 128),
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// A child process; it is killed when this is dropped, or when this process ends.
#[derive(Debug)]
pub struct Child {
    guard: Guarded,
    role: String,
    lines: UnboundedReceiver<String>,
    seen: Vec<String>,
}

/// Runs one test of this binary, named with its modules (`faults::worker_main`), in a
/// process of its own, with variables added to its environment.
///
/// # Panics
///
/// If the process can't be started.
pub fn child(test: &str, envs: &[(&str, &str)]) -> Child {
    let program = env::current_exe().expect("the path of the test binary");
    let mut variables = vec![(ROLE.to_owned(), test.to_owned())];
    for (name, value) in envs {
        variables.push(((*name).to_owned(), (*value).to_owned()));
    }
    let (sender, lines) = mpsc::unbounded_channel();
    let args = [test, "--exact", "--nocapture", "--include-ignored"];
    let spawn = Spawn {
        program: &program,
        args: args.map(Into::into).to_vec(),
        envs: variables,
        stderr: Stdio::inherit(),
        folder: None,
    };
    let guard = Guarded::spawn(spawn, move |line| {
        // The test harness may have begun the line.
        let line = line.split_once(MARK).map_or(line.as_str(), |(_, event)| event);
        let _ = sender.send(line.to_owned());
    });
    Child {
        guard: guard.unwrap_or_else(|error| panic!("{test} doesn't start: {error}")),
        role: test.to_owned(),
        lines,
        seen: Vec::new(),
    }
}

/// Returns whether this process was started by [`child`] to run this test.
pub fn in_role(test: &str) -> bool {
    env::var(ROLE).is_ok_and(|role| role == test)
}

/// Tells the test that started this process something: a line for [`Child::wait_line`].
pub fn event(text: &str) {
    let mut stdout = io::stdout().lock();
    // A test that has ended doesn't listen any more.
    let _ = writeln!(stdout, "{MARK}{text}").and_then(|()| stdout.flush());
}

impl Child {
    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.guard.pid()
    }

    /// Waits for a line that begins with this text, and returns the rest of it. Lines
    /// before it are passed over.
    ///
    /// # Panics
    ///
    /// If the child ends, or takes too long.
    pub async fn wait_line(&mut self, start: &str) -> String {
        loop {
            let Ok(line) = timeout(PATIENCE, self.lines.recv()).await else {
                self.fail(&format!("no line \"{start}\" in {PATIENCE:?}"));
            };
            let Some(line) = line else {
                self.fail(&format!("it ended before the line \"{start}\""));
            };
            self.seen.push(line);
            if let Some(rest) = self.seen.last().and_then(|line| line.strip_prefix(start)) {
                return rest.trim_start().to_owned();
            }
        }
    }

    /// Returns the lines that have come and that no one has waited for.
    pub fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line.clone());
            lines.push(line);
        }
        lines
    }

    /// Waits until the child ends by itself.
    ///
    /// # Panics
    ///
    /// If it takes too long.
    pub async fn wait(mut self) -> Ended {
        loop {
            match timeout(PATIENCE, self.lines.recv()).await {
                Ok(Some(line)) => self.seen.push(line),
                Ok(None) => break,
                Err(_) => self.fail(&format!("it still runs after {PATIENCE:?}")),
            }
        }
        self.kill().await
    }

    /// Kills the child, as a crash would, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// If that can't be done.
    pub async fn kill(mut self) -> Ended {
        let status = spawn_blocking(move || self.guard.end(false)).await;
        Ended::of(status.expect("no panic").expect("the child's status"))
    }

    /// Asks the child to end.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks the child to end as a terminal does, by Ctrl-C.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Stops the child without ending it; on Linux it has stopped once this returns.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn freeze(&self) {
        if let Err(error) = self.guard.freeze() {
            self.fail(&format!("it can't be frozen: {error}"));
        }
    }

    /// Lets a frozen child go on.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = self.guard.signal(signal) {
            self.fail(&format!("no {signal:?}: {error}"));
        }
    }

    fn fail(&self, why: &str) -> ! {
        panic!("{}: {why}; it printed:\n{}", self.role, self.seen.join("\n"));
    }
}
