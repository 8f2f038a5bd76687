//! The commands without which no job gets on: a yardstick.
//!
//! The scripts are in `bare/`, and are not emq's: they do what its guarantees need, and know no priorities, lanes,
//! deduplication keys, results or events. So they stay as they are while emq changes.

use emq::BoxError;
use support::Reply;

use crate::pipe::Pipe;

/// How long a job is leased, in ms.
const LEASE: &[u8] = b"3600000";

/// A script on the server.
#[derive(Debug)]
pub(crate) struct Script {
    /// All that comes in front of the arguments.
    head: Vec<Vec<u8>>,
}

impl Script {
    /// `prefix` is what all keys of the queue begin with.
    pub(crate) async fn enqueue(pipe: &mut Pipe, prefix: &str) -> Result<Self, BoxError> {
        let keys = ["job:", "pending", "done", "marker"];
        Self::load(pipe, include_str!("bare/enqueue.lua"), prefix, &keys).await
    }

    pub(crate) async fn cycle(pipe: &mut Pipe, prefix: &str) -> Result<Self, BoxError> {
        let keys = ["job:", "pending", "active", "done", "claims", "metrics:completed"];
        Self::load(pipe, include_str!("bare/cycle.lua"), prefix, &keys).await
    }

    /// Moves jobs back to those that wait, `from` the schedule or from those in hand.
    async fn back(pipe: &mut Pipe, prefix: &str, from: &str) -> Result<Self, BoxError> {
        let keys = ["job:", from, "pending", "marker"];
        Self::load(pipe, include_str!("bare/back.lua"), prefix, &keys).await
    }

    async fn load(pipe: &mut Pipe, source: &str, prefix: &str, keys: &[&str]) -> Result<Self, BoxError> {
        let hash = pipe.call(&["SCRIPT", "LOAD", source]).await?;
        let mut head = vec![b"EVALSHA".to_vec(), hash.bytes().to_vec(), keys.len().to_string().into_bytes()];
        head.extend(keys.iter().map(|key| format!("{prefix}{key}").into_bytes()));
        Ok(Self { head })
    }

    pub(crate) fn push(&self, pipe: &mut Pipe, args: &[Vec<u8>]) -> Result<(), BoxError> {
        // Not chained: the length has to be known.
        let all: Vec<&[u8]> = self.head.iter().chain(args).map(Vec::as_slice).collect();
        Ok(pipe.push(all.into_iter())?)
    }

    async fn call(&self, pipe: &mut Pipe, args: &[Vec<u8>]) -> Result<Reply, BoxError> {
        self.push(pipe, args)?;
        Ok(pipe.reply().await?)
    }
}

/// The verbs of a queue, by the bare commands.
#[derive(Debug)]
pub(crate) struct Bare {
    pipe: Pipe,
    enqueue: Script,
    cycle: Script,
    promote: Script,
    reap: Script,
    payload: Vec<u8>,
    /// How many jobs were enqueued, and how often some were claimed.
    counts: (usize, usize),
}

impl Bare {
    /// `prefix` is what all keys of the queue begin with.
    pub(crate) async fn open(port: u16, prefix: &str, payload: Vec<u8>) -> Result<Self, BoxError> {
        let mut pipe = Pipe::open(port).await?;
        Ok(Self {
            enqueue: Script::enqueue(&mut pipe, prefix).await?,
            cycle: Script::cycle(&mut pipe, prefix).await?,
            promote: Script::back(&mut pipe, prefix, "schedule").await?,
            reap: Script::back(&mut pipe, prefix, "active").await?,
            pipe,
            payload,
            counts: (0, 0),
        })
    }

    /// Enqueues so many jobs, younger than any of emq's.
    pub(crate) async fn enqueue(&mut self, jobs: usize) -> Result<(), BoxError> {
        let first = self.counts.0;
        self.counts.0 += jobs;
        let ids = (first..self.counts.0).map(|n| format!("JOBA{n:010}").into_bytes());
        let args: Vec<_> = ids.flat_map(|id| [id, self.payload.clone()]).collect();
        self.enqueue.call(&mut self.pipe, &args).await?;
        Ok(())
    }

    /// Claims so many jobs; answers their ids, each with its token.
    pub(crate) async fn claim(&mut self, jobs: usize) -> Result<Vec<[Vec<u8>; 2]>, BoxError> {
        let args = self.request(jobs);
        let claimed = self.cycle.call(&mut self.pipe, &args).await?;
        Ok(claimed.items().iter().map(|job| [0, 1].map(|part| job.items()[part].bytes().to_vec())).collect())
    }

    /// Settles jobs, each by a call of its own; the calls are under way together.
    pub(crate) async fn settle(&mut self, jobs: &[[Vec<u8>; 2]]) -> Result<(), BoxError> {
        for job in jobs {
            let args = [self.request(0), job.to_vec()].concat();
            self.cycle.push(&mut self.pipe, &args)?;
        }
        for _ in jobs {
            self.pipe.reply().await?;
        }
        Ok(())
    }

    /// Moves so many due jobs to those that wait; answers how many there were.
    pub(crate) async fn promote(&mut self, jobs: usize) -> Result<u64, BoxError> {
        let moved = self.promote.call(&mut self.pipe, &[jobs.to_string().into_bytes()]).await?;
        Ok(u64::try_from(moved.int())?)
    }

    /// Moves so many jobs whose lease ran out to those that wait; answers how many there were.
    pub(crate) async fn reap(&mut self, jobs: usize) -> Result<u64, BoxError> {
        let moved = self.reap.call(&mut self.pipe, &[jobs.to_string().into_bytes()]).await?;
        Ok(u64::try_from(moved.int())?)
    }

    fn request(&mut self, jobs: usize) -> Vec<Vec<u8>> {
        self.counts.1 += 1;
        vec![jobs.to_string().into_bytes(), LEASE.to_vec(), b"bare".to_vec(), self.counts.1.to_string().into_bytes()]
    }
}
