//! How much memory the server and the oldest worker use, and whether that grows with the jobs that have run.

use std::{fs, io, process::Command, time::Duration};

use support::{Raw, Reply};
use tokio::time::timeout;

/// What a worker or the server may grow by for no reason at all, in KiB: three times what was ever seen.
const SLACK: u64 = 1536;

/// What a worker may grow by per job, in bytes.
const PER_RUN: u64 = 192;

/// What the server may use per key, in bytes: a dead letter has the most, and its entry in a set.
const PER_KEY: u64 = 512;

/// By then every part of a worker has been used.
const WARM_UP: Duration = Duration::from_secs(30);

/// The looks of this time are compared with each other: the highest of an early one with the lowest of the last one, so
/// that no peak is taken for growth.
const WINDOW: Duration = Duration::from_secs(15);

/// The worker that is never killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Since the beginning.
    pub(crate) at: Duration,
    /// Of its memory what is resident, in KiB.
    pub(crate) resident: u64,
    /// How many jobs it has claimed.
    pub(crate) runs: u64,
}

/// What the server says of itself; all is 0 while it is away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    /// In KiB.
    pub(crate) used: u64,
    /// Without what clients, scripts, the append-only file and the like take, in KiB.
    pub(crate) data: u64,
    pub(crate) keys: u64,
}

impl Server {
    pub(crate) async fn ask(port: u16) -> Self {
        let asked = timeout(Duration::from_secs(5), async {
            let mut raw = Raw::open(port).await?;
            let info = raw.try_command(&["INFO", "memory"]).await?;
            let size = raw.try_command(&["DBSIZE"]).await?;
            Ok::<_, io::Error>((info, size))
        });
        let Ok(Ok((Reply::Bulk(info), Reply::Int(keys)))) = asked.await else { return Self::default() };
        let info = String::from_utf8_lossy(&info);
        Self {
            used: field(&info, "used_memory:") / 1024,
            data: field(&info, "used_memory_dataset:") / 1024,
            keys: keys.unsigned_abs(),
        }
    }

    /// What is wrong with the memory at the end; `self` is what it was at the start.
    pub(crate) fn growth(&self, end: &Self) -> Option<String> {
        let allowed = self.data + SLACK + end.keys * PER_KEY / 1024;
        let Self { data, keys, .. } = end;
        (*data > allowed).then(|| format!("the server's data take {data} KiB for {keys} keys, more than {allowed} KiB"))
    }
}

/// What is wrong with the memory of a worker over the whole time.
pub(crate) fn growth(looks: &[Look]) -> Option<String> {
    let end = looks.last()?.at;
    let is_early = |look: &&Look| (WARM_UP..WARM_UP + WINDOW).contains(&look.at);
    let is_late = |look: &&Look| look.at + WINDOW >= end && look.at >= WARM_UP + WINDOW;
    let early = looks.iter().filter(is_early).max_by_key(|look| look.resident)?;
    let late = looks.iter().filter(is_late).min_by_key(|look| look.resident)?;
    let runs = late.runs.saturating_sub(early.runs);
    let allowed = early.resident + SLACK + runs * PER_RUN / 1024;
    (late.resident > allowed).then(|| {
        let (from, to) = (early.resident, late.resident);
        format!("a worker has grown from {from} to {to} KiB in {runs} runs, to more than {allowed} KiB")
    })
}

/// The resident memory of a process in KiB; 0 if nobody can tell.
pub(crate) fn resident(pid: u32) -> u64 {
    if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
        return field(&status, "VmRSS:");
    }
    let told = Command::new("ps").args(["-o", "rss=", "-p", &pid.to_string()]).output();
    told.ok().and_then(|told| String::from_utf8_lossy(&told.stdout).trim().parse().ok()).unwrap_or(0)
}

fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three minutes of a worker with 40 jobs a second, as it is measured, and with a leak of so many bytes per job.
    fn three_minutes(leak: u64) -> Vec<Look> {
        let look = |second: u64| {
            let (runs, noise) = (40 * second, second * 7919 % 600);
            let warm = 23_000 + 1_000 * second.min(25) / 25;
            Look { at: Duration::from_secs(second), resident: warm + noise + runs * leak / 1024, runs }
        };
        (0..=180).step_by(5).map(look).collect()
    }

    #[test]
    fn a_worker_that_keeps_a_kilobyte_of_each_job_is_found_and_one_that_warms_up_isnt() {
        assert_eq!(growth(&three_minutes(0)), None);
        assert!(growth(&three_minutes(1024)).is_some());
    }

    #[test]
    fn a_soak_that_ends_before_it_is_warm_says_nothing_of_workers() {
        assert_eq!(growth(&three_minutes(1024)[..6]), None);
        assert_eq!(growth(&[]), None);
    }

    #[test]
    fn a_server_that_keeps_a_kilobyte_of_each_job_is_found_and_one_that_keeps_its_keys_isnt() {
        let start = Server { used: 1_500, data: 100, keys: 10 };
        let jobs = 15_000;
        let good = Server { used: 6_000, data: 100 + 7_000 * 250 / 1024, keys: 7_000 };
        assert_eq!(start.growth(&good), None);
        assert!(start.growth(&Server { data: good.data + jobs, ..good }).is_some());
    }
}
