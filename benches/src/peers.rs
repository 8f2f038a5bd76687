//! `peers`: other job queues at the same work, in the same run.
//!
//! They are programs of their own, in `benches/peers`; `script/bench` builds them, and says where they are in
//! `EMQ_PEERS` and `EMQ_BULLMQ`. One that isn't there is left out, and told of.
//!
//! Such a program is called with the peer, what to do, the server's URL, a number of jobs and a concurrency. It prepares
//! that, prints `ready`, waits for a line, does it, and prints `done`, the µs it took and the µs of CPU it took for it.

use std::{env, fmt, process::Stdio, time::Duration};

use emq::BoxError;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{
    enqueue,
    lab::Lab,
    limit,
    meter::Sample,
    process,
    settings::Settings,
    trial::{Trial, compared, in_turn},
};

/// How long a peer may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// Another job queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Apalis,
    ApalisLocked,
    BullmqRust,
    Bullmq,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Apalis, Self::ApalisLocked, Self::BullmqRust, Self::Bullmq];

    /// What its program is called with.
    fn word(self) -> &'static str {
        match self {
            Self::Apalis => "apalis",
            Self::ApalisLocked => "apalis-locked",
            Self::BullmqRust => "bullmq-rust",
            Self::Bullmq => "bullmq",
        }
    }

    /// How it is set, as was found to be best for it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Apalis => "apalis-redis, no locks, no events, batches of 200",
            Self::ApalisLocked => "apalis-redis, its default locks, batches of 100",
            Self::BullmqRust => "bullmq-official (Rust), finished jobs removed",
            Self::Bullmq => "BullMQ (Node), finished jobs removed",
        }
    }

    /// The concurrency at which it is fastest.
    fn best(self) -> usize {
        match self {
            Self::Apalis | Self::ApalisLocked => 1_000,
            Self::BullmqRust | Self::Bullmq => 100,
        }
    }

    /// A backlog that takes it seconds.
    pub(crate) fn jobs(self, concurrency: usize) -> u64 {
        match self {
            Self::Apalis => 50_000,
            // It takes the longer for each job the more wait.
            Self::ApalisLocked => 5_000,
            Self::BullmqRust | Self::Bullmq => {
                if concurrency < 10 {
                    10_000
                } else {
                    30_000
                }
            }
        }
    }

    /// The command that runs it, if it is there.
    fn command(self) -> Option<Command> {
        let is_node = self == Self::Bullmq;
        let path = env::var_os(if is_node { "EMQ_BULLMQ" } else { "EMQ_PEERS" }).filter(|path| !path.is_empty())?;
        if !is_node {
            return Some(Command::new(path));
        }
        let mut command = Command::new("node");
        command.arg(path);
        Some(command)
    }

    /// Those that are there; of the others it is told.
    pub(crate) fn present() -> Vec<Self> {
        let (present, absent): (Vec<_>, Vec<_>) = Self::ALL.into_iter().partition(|peer| peer.command().is_some());
        for peer in absent {
            eprintln!("bench: left out: {}, which isn't there; `script/bench` builds it", peer.title());
        }
        present
    }
}

/// What a peer is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    EnqueueOne,
    EnqueueMany,
    Process,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EnqueueOne => "enqueue-one",
            Self::EnqueueMany => "enqueue-many",
            Self::Process => "process",
        })
    }
}

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let peers = Peer::present();
    let jobs = settings.jobs(5_000);
    let mut trials = vec![enqueue::one(settings, jobs)];
    // How it locks makes no difference to how it enqueues.
    let enqueuers = || peers.iter().filter(|peer| **peer != Peer::ApalisLocked);
    trials.extend(enqueuers().map(|peer| trial(settings, *peer, Task::EnqueueOne, 1, jobs)));
    println!("Enqueue, one after the other:\n\n{}", compared(&in_turn(settings, &trials).await));

    let jobs = settings.jobs(50_000);
    let mut trials = vec![enqueue::bulk(settings, jobs)];
    trials.extend(enqueuers().map(|peer| trial(settings, *peer, Task::EnqueueMany, 1, jobs)));
    println!("Enqueue, 1000 in one call (apalis: 500):\n\n{}", compared(&in_turn(settings, &trials).await));

    let mut trials = vec![process::one(settings, 1_000, 100_000), process::one(settings, 100, 50_000)];
    for peer in &peers {
        let concurrency = peer.best();
        trials.push(trial(settings, *peer, Task::Process, concurrency, settings.jobs(peer.jobs(concurrency))));
    }
    trials.push(limit::cycle(settings, 64, settings.jobs(100_000)));
    println!("Process a backlog, each at its best:\n\n{}", compared(&in_turn(settings, &trials).await));
    Ok(())
}

/// A peer at work.
pub(crate) fn trial(settings: &Settings, peer: Peer, task: Task, concurrency: usize, jobs: u64) -> Trial<'_> {
    let label = match task {
        Task::Process => format!("{}, {concurrency} at once", peer.title()),
        Task::EnqueueOne | Task::EnqueueMany => peer.title().to_owned(),
    };
    Trial::new(label, move || async move {
        let lab = Lab::start(settings).await;
        let mut running = Running::start(peer, task, &lab.url(), jobs, concurrency)?;
        running.line("ready").await?;
        let meter = lab.meter().await;
        running.go().await?;
        let done = running.line("done").await?;
        let sample = match done.split_whitespace().map(str::parse).collect::<Result<Vec<_>, _>>()?.as_slice() {
            [took, cpu] => meter.stop_for(jobs, Duration::from_micros(*took), Duration::from_micros(*cpu)).await,
            _ => return Err(format!("{} says done {done:?}", peer.title()).into()),
        };
        Ok::<Sample, BoxError>(sample)
    })
}

/// A peer's process; it is killed when this is dropped.
struct Running {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(peer: Peer, task: Task, url: &str, jobs: u64, concurrency: usize) -> Result<Self, BoxError> {
        let mut command = peer.command().ok_or("it isn't there")?;
        command.args([peer.word(), &task.to_string(), url, &jobs.to_string(), &concurrency.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        Ok(Self { _child: child, stdin, lines })
    }

    async fn go(&mut self) -> Result<(), BoxError> {
        self.stdin.write_all(b"go\n").await?;
        Ok(self.stdin.flush().await?)
    }

    /// What stands behind this word on the line that begins with it.
    async fn line(&mut self, word: &str) -> Result<String, BoxError> {
        loop {
            let line =
                timeout(PATIENCE, self.lines.next_line()).await.map_err(|_| format!("no {word:?} in time"))??;
            let line = line.ok_or_else(|| format!("it ended before it was {word}"))?;
            if let Some(rest) = line.strip_prefix(word) {
                return Ok(rest.trim().to_owned());
            }
        }
    }
}
