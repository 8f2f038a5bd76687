//! Runs the worker processes, and makes their life hard.

use std::{
    convert::Infallible,
    env, io,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use crate::worker::LEASE;

const WORKERS: usize = 3;

/// One strike in this many freezes a worker instead of killing it.
const FREEZE_EVERY: u64 = 8;

/// How long a worker stays frozen, at least: past its leases and the next beat of the others.
const FROZEN: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// How long a worker may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// What was done to the workers so far.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    kills: AtomicU64,
    freezes: AtomicU64,
}

impl Strikes {
    pub(crate) fn kills(&self) -> u64 {
        self.kills.load(Ordering::Relaxed)
    }

    pub(crate) fn freezes(&self) -> u64 {
        self.freezes.load(Ordering::Relaxed)
    }
}

/// Three worker processes. They are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Supervisor {
    program: Program,
    workers: Vec<Child>,
    frozen: Option<Frozen>,
    strikes: Arc<Strikes>,
    chance: StdRng,
}

#[derive(Clone, Copy, Debug)]
struct Frozen {
    worker: usize,
    until: Instant,
}

/// How a worker is started.
#[derive(Debug)]
struct Program {
    url: String,
    queue: String,
    database: Box<Path>,
}

impl Program {
    fn start(&self) -> io::Result<Child> {
        Command::new(env::current_exe()?)
            .args(["worker", &self.queue])
            .arg(&*self.database)
            // Not as an argument: it may hold a password, and everybody may list those.
            .env("EMQ_URL", &self.url)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }
}

impl Supervisor {
    /// Starts the workers.
    pub(crate) fn start(url: &str, queue: &str, database: &Path, seed: u64) -> io::Result<Self> {
        let program = Program { url: url.to_owned(), queue: queue.to_owned(), database: database.into() };
        let workers = (0..WORKERS).map(|_| program.start()).collect::<io::Result<_>>()?;
        Ok(Self { program, workers, frozen: None, strikes: Arc::default(), chance: StdRng::seed_from_u64(seed) })
    }

    pub(crate) fn strikes(&self) -> Arc<Strikes> {
        Arc::clone(&self.strikes)
    }

    /// Kills a worker about once a second and starts another in its place, and freezes one now and then, until this
    /// future is dropped.
    ///
    /// # Errors
    ///
    /// Also if a worker has ended by itself, which none should.
    pub(crate) async fn harass(&mut self) -> io::Result<Infallible> {
        let mut strike = 0_u64;
        loop {
            strike += 1;
            sleep(Duration::from_millis(self.chance.random_range(500..1_500))).await;
            for worker in &mut self.workers {
                if let Some(status) = worker.try_wait()? {
                    return Err(io::Error::other(format!("a worker ended by itself: {status}")));
                }
            }
            let victim = self.chance.random_range(0..WORKERS);
            match self.frozen {
                // Nobody is killed meanwhile: the woken one is to come too late with what it has in hand.
                Some(frozen) if Instant::now() >= frozen.until => self.thaw(frozen.worker)?,
                Some(frozen) if frozen.worker == victim => {}
                None if strike.is_multiple_of(FREEZE_EVERY) => self.freeze(victim)?,
                _ => self.kill(victim).await?,
            }
        }
    }

    async fn kill(&mut self, victim: usize) -> io::Result<()> {
        // SIGKILL: it gets no chance to settle or give back what it has in hand.
        self.workers[victim].kill().await?;
        self.strikes.kills.fetch_add(1, Ordering::Relaxed);
        self.workers[victim] = self.program.start()?;
        Ok(())
    }

    /// Stops a worker without ending it.
    fn freeze(&mut self, victim: usize) -> io::Result<()> {
        signal(&self.workers[victim], Signal::STOP)?;
        self.strikes.freezes.fetch_add(1, Ordering::Relaxed);
        self.frozen = Some(Frozen { worker: victim, until: Instant::now() + FROZEN });
        Ok(())
    }

    fn thaw(&mut self, worker: usize) -> io::Result<()> {
        self.frozen = None;
        signal(&self.workers[worker], Signal::CONT)
    }

    /// Lets the workers end in peace.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        for worker in &self.workers {
            // One may still be frozen.
            signal(worker, Signal::CONT)?;
            signal(worker, Signal::TERM)?;
        }
        for worker in &mut self.workers {
            match timeout(GRACE, worker.wait()).await {
                Ok(status) => status?,
                Err(_) => return Err(io::Error::other(format!("a worker didn't end within {GRACE:?}"))),
            };
        }
        Ok(())
    }
}

/// Sends a signal to a process of ours, unless it has ended already.
fn signal(worker: &Child, signal: Signal) -> io::Result<()> {
    let pid = worker.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match pid {
        // Its number can't be another's yet: nobody has waited for it.
        Some(pid) => Ok(kill_process(pid, signal)?),
        None => Ok(()),
    }
}
