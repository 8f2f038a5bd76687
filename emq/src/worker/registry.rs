use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use super::{BuildProblem, builder::SHORTEST_LEASE, recurring::Declared};
use crate::{
    job::{Handler, JobOptions, QueueName},
    layer::{Route, Runner, UserLayer, handler, stack},
};

/// The jobs that a worker was given.
#[derive(Default)]
pub(super) struct Registry {
    jobs: Vec<Registered>,
}

struct Registered {
    name: &'static str,
    aliases: &'static [&'static str],
    options: JobOptions,
    location: &'static str,
    runner: Runner,
    recurring: Option<Result<Declared, String>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.jobs.iter().map(|job| job.name)).finish()
    }
}

impl Registry {
    pub(super) fn add<S, J>(&mut self, state: &Arc<S>, layers: &[UserLayer])
    where
        S: Send + Sync + 'static,
        J: Handler<S>,
    {
        self.jobs.push(Registered {
            name: J::NAME,
            aliases: J::ALIASES,
            options: J::OPTIONS,
            location: J::LOCATION,
            recurring: J::recurrence().map(Declared::of::<J>),
            runner: stack::job(layers, handler::<S, J>(Arc::clone(state))),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The queues of the jobs' types.
    pub(super) fn queues(&self) -> impl Iterator<Item = &'static str> {
        self.jobs.iter().map(|job| job.options.queue)
    }

    /// The jobs whose types say that they recur, each with its queue.
    pub(super) fn recurring(&self) -> impl Iterator<Item = (&'static str, Declared)> {
        self.jobs.iter().filter_map(|job| Some((job.options.queue, job.recurring.clone()?.ok()?)))
    }

    /// What is wrong with the jobs' types.
    pub(super) fn problems(&self) -> Vec<BuildProblem> {
        let mut problems = self.duplicates();
        for job in &self.jobs {
            if let Some(Err(reason)) = &job.recurring {
                problems.push(BuildProblem::Recurring { job: job.name.to_owned(), reason: reason.clone() });
            }
            let settings = [
                ("lease", job.options.lease, SHORTEST_LEASE, "100 ms"),
                ("timeout", job.options.timeout, Duration::from_millis(1), "1 ms"),
            ];
            for (setting, value, least, text) in settings {
                if let Some(value) = value.filter(|value| *value < least) {
                    let setting = format!("the {setting} of the job {:?}", job.name);
                    problems.push(BuildProblem::TooShort { setting, value: format!("{value:?}"), least: text });
                }
            }
        }
        problems
    }

    /// Names to which two jobs answer.
    fn duplicates(&self) -> Vec<BuildProblem> {
        let mut first: HashMap<&str, &Registered> = HashMap::new();
        let mut problems = Vec::new();
        for job in &self.jobs {
            for name in job.names() {
                if let Some(other) = first.insert(name, job)
                    && !std::ptr::eq(other, job)
                {
                    problems.push(BuildProblem::DuplicateName {
                        name: name.to_owned(),
                        first: other.place(),
                        second: job.place(),
                    });
                }
            }
        }
        problems
    }

    /// What is looked up when a job is claimed, and the services that run it.
    pub(super) fn into_services(self) -> (Names, Route) {
        let mut names = Names::default();
        let mut route = Route::default();
        for job in self.jobs {
            let all: Vec<_> = job.names().collect();
            for name in &all {
                names.options.insert(name, job.options);
            }
            names.jobs.push((job.name, job.options.queue));
            route.add(all, &job.runner);
        }
        (names, route)
    }
}

impl Registered {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    fn place(&self) -> &'static str {
        if self.location.is_empty() { self.name } else { self.location }
    }
}

/// Which job a name means, and its options.
#[derive(Debug, Default)]
pub(super) struct Names {
    options: HashMap<&'static str, JobOptions>,
    jobs: Vec<(&'static str, &'static str)>,
    /// Partition → the queue that it is of.
    partitions: HashMap<QueueName, QueueName>,
}

impl Names {
    pub(super) fn options(&self, name: &str) -> JobOptions {
        self.options.get(name).copied().unwrap_or_default()
    }

    /// Says of which queue a partition is.
    pub(super) fn divide(&mut self, queue: &QueueName, partition: &QueueName) {
        self.partitions.insert(partition.clone(), queue.clone());
    }

    /// The job of a row without a name, as EchoMQ writes them: the queue's only one.
    pub(super) fn unnamed(&self, queue: &QueueName) -> Option<&'static str> {
        let queue = self.partitions.get(queue).unwrap_or(queue);
        let only = |mut jobs: Vec<&'static str>| if jobs.len() == 1 { jobs.pop() } else { None };
        let of_queue = self.jobs.iter().filter(|(_, of)| *of == queue.as_str()).map(|(name, _)| *name).collect();
        only(of_queue).or_else(|| only(self.jobs.iter().map(|(name, _)| *name).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(jobs: &[(&'static str, &'static str)]) -> Names {
        Names { jobs: jobs.to_vec(), ..Names::default() }
    }

    #[test]
    fn a_row_without_a_name_goes_to_the_queues_only_job() {
        let mail = QueueName::new("mail").unwrap();
        assert_eq!(names(&[("send", "mail"), ("bill", "money")]).unnamed(&mail), Some("send"));
        assert_eq!(names(&[("send", "other")]).unnamed(&mail), Some("send"), "the worker has no other");
        assert_eq!(names(&[("send", "mail"), ("bounce", "mail")]).unnamed(&mail), None);
        assert_eq!(names(&[("send", "a"), ("bounce", "b")]).unnamed(&mail), None);
        let mut both = names(&[("send", "mail"), ("bill", "money")]);
        let partition = QueueName::new("mail.1-ds").unwrap();
        assert_eq!(both.unnamed(&partition), None);
        both.divide(&mail, &partition);
        assert_eq!(both.unnamed(&partition), Some("send"), "a partition is of its queue");
    }
}
