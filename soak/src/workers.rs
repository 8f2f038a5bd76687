//! The worker processes: this program, started again.

use std::{path::Path, process::ExitCode, time::Duration};

use support::{Child, child, event, in_role, process::Ended};
use tokio::time::{Instant, timeout};

use crate::{book::Book, worker};

const ROLE: &str = "soak-worker";

/// How many there are. The first is never killed, so that it gets old.
pub(crate) const WORKERS: usize = 3;

/// How long a worker may take to end when it is asked to: its grace time, what blocks its threads, and what keeps the machine
/// busy.
const GRACE: Duration = Duration::from_secs(50);

/// Does the work of a worker, if this process is one.
pub(crate) async fn be_one() -> Option<ExitCode> {
    if !in_role(ROLE) {
        return None;
    }
    event("started");
    Some(match worker::run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: a worker: {error}");
            ExitCode::FAILURE
        }
    })
}

struct One {
    child: Child,
    thaw_at: Option<Instant>,
}

/// The workers that run now; they end with this.
pub(crate) struct Workers {
    url: String,
    ledger: String,
    all: Vec<One>,
}

impl Workers {
    pub(crate) fn start(url: String, ledger: &Path) -> Self {
        let mut workers = Self { url, ledger: ledger.display().to_string(), all: Vec::new() };
        workers.all.extend((0..WORKERS).map(|_| One { child: start(&workers.url, &workers.ledger), thaw_at: None }));
        workers
    }

    /// Kills a worker with SIGKILL, and starts another in its place.
    pub(crate) async fn kill(&mut self, index: usize) {
        let killed = self.replace(index);
        killed.child.kill().await;
    }

    /// Asks a worker to end, and starts another in its place. Returns what tells when the old one has ended.
    pub(crate) fn terminate(&mut self, index: usize) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let old = self.replace(index);
        if old.thaw_at.is_some() {
            old.child.thaw();
        }
        end(old.child)
    }

    /// Stops a worker without ending it, for so long.
    pub(crate) fn freeze(&mut self, index: usize, time: Duration) {
        let one = &mut self.all[index];
        if one.thaw_at.is_none() {
            one.child.freeze();
        }
        one.thaw_at = Some(Instant::now() + time);
    }

    /// Lets those go on whose time has come, or all.
    pub(crate) fn thaw(&mut self, all: bool) {
        for one in &mut self.all {
            if one.thaw_at.is_some_and(|at| all || at <= Instant::now()) {
                one.child.thaw();
                one.thaw_at = None;
            }
        }
    }

    /// The process id of the one that is never killed.
    pub(crate) fn oldest(&self) -> u32 {
        self.all[0].child.pid()
    }

    /// Lets all end in peace.
    pub(crate) async fn stop(mut self, book: &Book) {
        self.thaw(true);
        let ending: Vec<_> = self.all.into_iter().map(|one| tokio::spawn(end(one.child))).collect();
        for ended in ending {
            match ended.await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => book.violation(why),
                Err(error) => book.violation(error.to_string()),
            }
        }
    }

    fn replace(&mut self, index: usize) -> One {
        let new = One { child: start(&self.url, &self.ledger), thaw_at: None };
        std::mem::replace(&mut self.all[index], new)
    }
}

fn start(url: &str, ledger: &str) -> Child {
    // So that what glibc gives back to the system is what was freed, and memory that grows is memory that leaks.
    let frugal = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "32768"), ("MALLOC_TRIM_THRESHOLD_", "65536")];
    let envs = [(worker::URL, url), (worker::LEDGER, ledger)].into_iter().chain(frugal).collect::<Vec<_>>();
    child(ROLE, &envs)
}

/// Asks a worker to end, and waits for it.
async fn end(child: Child) -> Result<(), String> {
    let pid = child.pid();
    child.terminate();
    match timeout(GRACE, child.wait()).await {
        Ok(ended) if ended.is_success() => Ok(()),
        // It may have been told before it listened.
        Ok(Ended::Signal(15)) => Ok(()),
        Ok(ended) => Err(format!("the worker {pid} ended with {ended:?} when it was asked to end")),
        Err(_) => Err(format!("the worker {pid} didn't end within {GRACE:?} after it was asked to")),
    }
}
