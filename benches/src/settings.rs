//! What is asked for on the command line.

use std::fmt;

use emq::BoxError;

pub(crate) const USAGE: &str = "usage: bench [limit|enqueue|process|profile|latency|scale|idle|partitions|rss|peers|chart|all]… \
     [--quick] [--deep] [--rounds N] [--config \"NAME VALUE\"]…";

/// One program that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Limit,
    Enqueue,
    Process,
    Profile,
    Latency,
    Scale,
    Idle,
    Partitions,
    Rss,
    Peers,
    Chart,
}

impl Program {
    const ALL: [Self; 11] = [
        Self::Limit,
        Self::Enqueue,
        Self::Process,
        Self::Profile,
        Self::Latency,
        Self::Scale,
        Self::Idle,
        Self::Partitions,
        Self::Rss,
        Self::Peers,
        Self::Chart,
    ];

    /// What runs if no program is named: what takes minutes, and needs nothing but the server.
    const USUAL: [Self; 7] =
        [Self::Limit, Self::Enqueue, Self::Process, Self::Profile, Self::Latency, Self::Scale, Self::Idle];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Enqueue => "enqueue",
            Self::Process => "process",
            Self::Profile => "profile",
            Self::Latency => "latency",
            Self::Scale => "scale",
            Self::Idle => "idle",
            Self::Partitions => "partitions",
            Self::Rss => "rss",
            Self::Peers => "peers",
            Self::Chart => "chart",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) programs: Vec<Program>,
    /// A smoke test: each trial once, with few jobs.
    pub(crate) quick: bool,
    /// Also what takes gigabytes.
    pub(crate) deep: bool,
    /// How often each trial is run.
    pub(crate) rounds: usize,
    /// Lines for the configuration file of each server.
    pub(crate) config: Vec<(String, String)>,
}

impl Settings {
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Self, BoxError> {
        let mut programs = Vec::new();
        let (mut quick, mut deep, mut rounds, mut config) = (false, false, None, Vec::new());
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => quick = true,
                "--deep" => deep = true,
                "--rounds" => rounds = Some(args.next().ok_or("--rounds takes a number")?.parse::<usize>()?),
                "--config" => {
                    let line = args.next().ok_or("--config takes a line of the server's configuration")?;
                    let (name, value) = line.split_once(' ').ok_or("--config takes a name and a value in one text")?;
                    config.push((name.to_owned(), value.to_owned()));
                }
                "all" => programs.extend(Program::ALL),
                name => match Program::ALL.into_iter().find(|program| program.name() == name) {
                    Some(program) => programs.push(program),
                    None => return Err(format!("there is no program {name:?}").into()),
                },
            }
        }
        if programs.is_empty() {
            programs.extend(Program::USUAL);
        }
        let rounds = rounds.unwrap_or(if quick { 1 } else { 3 }).max(1);
        Ok(Self { programs, quick, deep, rounds, config })
    }

    /// As many jobs as a trial is to have, or few for a smoke test.
    pub(crate) fn jobs(&self, jobs: u64) -> u64 {
        if self.quick { (jobs / 50).clamp(20, 2_000).min(jobs) } else { jobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Settings, BoxError> {
        Settings::read(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn without_a_name_the_usual_programs_run() {
        let settings = read(&["--quick"]).unwrap();
        assert_eq!(settings.programs, Program::USUAL);
        assert_eq!(settings.rounds, 1);
    }

    #[test]
    fn programs_run_in_the_order_they_are_named() {
        let settings = read(&["rss", "limit", "--rounds", "5", "--config", "io-threads 2"]).unwrap();
        assert_eq!(settings.programs, [Program::Rss, Program::Limit]);
        assert_eq!((settings.rounds, settings.config), (5, vec![("io-threads".into(), "2".into())]));
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert_eq!(read(&["speed"]).unwrap_err().to_string(), "there is no program \"speed\"");
    }
}
