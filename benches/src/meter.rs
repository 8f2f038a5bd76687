//! What a run costs: time, CPU of the server and of this process, commands.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use support::Raw;

/// The commands by which a script is called.
const CALLS: [&str; 4] = ["evalsha", "eval", "fcall", "function"];

/// What one run did and took.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) jobs: u64,
    pub(crate) took: Duration,
    pub(crate) work: Work,
    /// Of the process that enqueued or worked.
    pub(crate) client_cpu: Duration,
    /// Cores that other programs took; NaN where that can't be known.
    pub(crate) others: f64,
}

impl Sample {
    pub(crate) fn per_second(&self) -> f64 {
        self.jobs as f64 / self.took.as_secs_f64()
    }

    /// µs for each job.
    pub(crate) fn server_us(&self) -> f64 {
        self.each(self.work.cpu.as_secs_f64() * 1e6)
    }

    /// µs for each job.
    pub(crate) fn client_us(&self) -> f64 {
        self.each(self.client_cpu.as_secs_f64() * 1e6)
    }

    pub(crate) fn each(&self, of_all: f64) -> f64 {
        of_all / self.jobs as f64
    }
}

/// What the server has done since it started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub(crate) cpu: Duration,
    /// Command → how often, and for how many µs.
    pub(crate) commands: BTreeMap<String, (u64, u64)>,
}

/// Whether a command calls a script, whose own commands are counted as well.
pub(crate) fn is_call(command: &str) -> bool {
    CALLS.contains(&command)
}

impl Work {
    pub(crate) async fn read(raw: &mut Raw) -> Self {
        let cpu = raw.command(&["INFO", "cpu"]).await;
        let commands = raw.command(&["INFO", "commandstats"]).await;
        Self { cpu: cpu_of(cpu.text()), commands: commands_of(commands.text()) }
    }

    /// What was done between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut commands = self.commands.clone();
        for (name, (calls, usec)) in &earlier.commands {
            if let Some(now) = commands.get_mut(name) {
                *now = (now.0 - calls, now.1 - usec);
            }
        }
        // The looking itself.
        commands.remove("info");
        commands.retain(|_, (calls, _)| *calls > 0);
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), commands }
    }

    /// Scripts called.
    pub(crate) fn calls(&self) -> u64 {
        CALLS.iter().filter_map(|name| self.commands.get(*name)).map(|(calls, _)| calls).sum()
    }

    /// µs inside of scripts.
    pub(crate) fn script_us(&self) -> u64 {
        CALLS.iter().filter_map(|name| self.commands.get(*name)).map(|(_, usec)| usec).sum()
    }

    /// Commands carried out, those inside of scripts among them.
    pub(crate) fn all(&self) -> u64 {
        self.commands.values().map(|(calls, _)| calls).sum()
    }
}

/// The CPU time in a report of the server.
fn cpu_of(info: &str) -> Duration {
    let seconds = info
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .filter(|(name, _)| matches!(*name, "used_cpu_sys" | "used_cpu_user"))
        .filter_map(|(_, value)| value.parse::<f64>().ok());
    Duration::from_secs_f64(seconds.sum())
}

/// The commands in a report of the server.
fn commands_of(info: &str) -> BTreeMap<String, (u64, u64)> {
    let lines = info.lines().filter_map(|line| line.trim().strip_prefix("cmdstat_")?.split_once(':'));
    lines
        .filter_map(|(name, fields)| {
            let field = |wanted: &str| {
                let mut pairs = fields.split(',').filter_map(|pair| pair.split_once('='));
                pairs.find(|(name, _)| *name == wanted)?.1.parse::<u64>().ok()
            };
            Some((name.to_owned(), (field("calls")?, field("usec")?)))
        })
        .collect()
}

/// Counts from its start to its end.
#[derive(Debug)]
pub(crate) struct Meter {
    raw: Raw,
    before: Work,
    own: Duration,
    machine: Option<Duration>,
    begun: Instant,
}

impl Meter {
    pub(crate) async fn start(mut raw: Raw) -> Self {
        let before = Work::read(&mut raw).await;
        Self { raw, before, own: own_cpu(), machine: machine_cpu(), begun: Instant::now() }
    }

    /// For this many jobs, done by this process.
    pub(crate) async fn stop(self, jobs: u64) -> Sample {
        let (took, own) = (self.begun.elapsed(), own_cpu());
        let client_cpu = own - self.own;
        self.stop_with(jobs, took, client_cpu, Duration::ZERO).await
    }

    /// For this many jobs, done by another process in this time, which says how much CPU it took.
    pub(crate) async fn stop_for(self, jobs: u64, took: Duration, client_cpu: Duration) -> Sample {
        let own = own_cpu() - self.own;
        self.stop_with(jobs, took, client_cpu, own).await
    }

    async fn stop_with(mut self, jobs: u64, took: Duration, client_cpu: Duration, besides: Duration) -> Sample {
        let machine = machine_cpu();
        let elapsed = self.begun.elapsed();
        let work = Work::read(&mut self.raw).await.since(&self.before);
        let others = match (self.machine, machine) {
            (Some(before), Some(after)) => {
                let ours = work.cpu + client_cpu + besides;
                (after.saturating_sub(before).as_secs_f64() - ours.as_secs_f64()).max(0.0) / elapsed.as_secs_f64()
            }
            _ => f64::NAN,
        };
        Sample { jobs, took, work, client_cpu, others }
    }
}

/// The CPU time of this process.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time that all cores of this machine were busy, where the system tells.
fn machine_cpu() -> Option<Duration> {
    busy(fs::read_to_string("/proc/stat").ok()?.lines().next()?)
}

/// Reads the first line of `/proc/stat`, in hundredths of a second.
fn busy(line: &str) -> Option<Duration> {
    let ticks: Vec<u64> = line.strip_prefix("cpu ")?.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = *ticks.as_slice() else { return None };
    Some(Duration::from_millis(10 * (user + nice + system + irq + softirq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_cpu_is_that_of_user_and_system() {
        let info = "# CPU\r\nused_cpu_sys:1.500000\r\nused_cpu_user:2.250000\r\nused_cpu_sys_children:9.0\r\n";
        assert_eq!(cpu_of(info), Duration::from_millis(3_750));
    }

    #[test]
    fn commands_are_counted_between_two_looks() {
        let before = commands_of("# Commandstats\r\ncmdstat_evalsha:calls=2,usec=30,usec_per_call=15.00\r\n");
        let after = commands_of(
            "cmdstat_evalsha:calls=5,usec=90,usec_per_call=18.00,rejected_calls=0\r\n\
             cmdstat_zadd:calls=4,usec=4,usec_per_call=1.00\r\ncmdstat_info:calls=7,usec=700\r\n",
        );
        let work = |commands| Work { cpu: Duration::ZERO, commands };
        let done = work(after).since(&work(before));
        assert_eq!((done.calls(), done.script_us(), done.all()), (3, 60, 7));
    }

    #[test]
    fn a_busy_machine_is_told_from_an_idle_one() {
        assert_eq!(busy("cpu  10 20 30 4000 50 6 7 8 0 0"), Some(Duration::from_millis(730)));
        assert_eq!(busy("cpu0 1 2"), None);
    }
}
