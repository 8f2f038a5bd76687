//! Recurring jobs that a job's type declares: the workers that register the type run them, and only these.

use std::time::Duration;

use emq::{
    BuildProblem, Completion, Handler, Job, JobContext, JobError, Recurrence, Schedule, State, Worker, inject::Scope,
};
use serde::{Deserialize, Serialize};
use support::{Raw, Server};

use crate::errand::{Place, Tell, Told, is_done, ms, start, telling};

/// Tells its slot in Unix ms.
#[emq::job(every = "50ms", queue = "declared")]
async fn tick(ctx: JobContext, State(tell): State<Tell<u64>>, #[serde(default)] limit: u32) {
    assert_eq!(limit, 0);
    tell.tell(ctx.slot().map_or(0, |slot| slot.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64));
}

/// On a server of its own, since the queue's name is that of the type.
async fn place(server: &Server) -> Place {
    let client = emq::Client::connect(server.url()).await.unwrap();
    let mut place = Place::of(server, client, "declared");
    place.queue = place.client.queue("declared").unwrap();
    place
}

async fn three(told: &mut Told<u64>) -> Vec<u64> {
    vec![told.next().await, told.next().await, told.next().await]
}

#[tokio::test]
async fn the_worker_that_registers_the_type_registers_the_recurring_job() {
    let server = Server::start().await;
    let place = place(&server).await;
    let (tell, mut told) = telling();
    let workers: Vec<_> = (0..2)
        .map(|_| Worker::builder(&place.client).state(tell.clone()).register::<TickJob>().build().unwrap())
        .map(|worker| (worker.handle(), tokio::spawn(worker.run())))
        .collect();
    let mut slots = three(&mut told).await;
    let registered = place.queue.recurring().get("tick").await.unwrap().unwrap();
    assert!(registered.declared);
    assert_eq!(registered.schedule, Some(Schedule::every(ms(50))));
    // None comes any more, and those that came are all done.
    place.queue.recurring().pause("tick").await.unwrap();
    place.until(async || place.queue.counts().await.unwrap().unfinished() == 0).await;
    for (handle, run) in workers {
        handle.shutdown();
        run.await.unwrap().unwrap();
    }
    slots.extend(told.rest());
    slots.sort_unstable();
    assert!(slots.windows(2).all(|pair| pair[1] - pair[0] == 50), "{slots:?}");
}

#[tokio::test]
async fn a_pause_outlasts_a_restart_and_what_a_server_has_lost_is_registered_again() {
    let server = Server::start().await;
    let place = place(&server).await;
    let (tell, mut told) = telling();
    let run = || {
        let builder = Worker::builder(&place.client).state(tell.clone()).register::<TickJob>().beat(ms(20));
        let worker = builder.build().unwrap();
        (worker.handle(), tokio::spawn(worker.run()))
    };
    let (handle, first) = run();
    three(&mut told).await;
    place.queue.recurring().pause("tick").await.unwrap();
    // What came before the pause doesn't run after it.
    place.until(async || place.queue.counts().await.unwrap().unfinished() == 0).await;
    handle.shutdown();
    first.await.unwrap().unwrap();
    told.rest();
    let (handle, second) = run();
    tokio::time::sleep(ms(300)).await;
    assert!(told.rest().is_empty(), "it is paused still");
    place.raw().await.line("DEL emq:{declared}:repeat emq:{declared}:repeat:tick").await;
    three(&mut told).await;
    handle.shutdown();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_doesnt_know_the_type_leaves_it_alone_and_forgets_it_after_a_day() {
    let server = Server::start().await;
    let place = place(&server).await;
    let mut raw = Raw::connect(&server).await;
    let now = raw.line("TIME").await.items()[0].text().parse::<u64>().unwrap() * 1_000;
    let old = now - 25 * 3_600 * 1_000;
    for (name, next) in [("fresh", now - 60_000), ("old", old)] {
        let record = format!("emq:{{declared}}:repeat:{name}");
        let next = next.to_string();
        let fields = ["schedule", "every 50 -", "start", "0", "next", &next, "declared", "1", "payload", "{}"];
        raw.command(&[&["HSET", record.as_str()], &fields[..]].concat()).await;
        raw.command(&["ZADD", "emq:{declared}:repeat", &next, name]).await;
    }
    let worker = start(place.worker(is_done()).beat(ms(20)));
    place.until(async || place.queue.recurring().get("old").await.unwrap().is_none()).await;
    // The worker looks again and again, and leaves it.
    tokio::time::sleep(ms(100)).await;
    let fresh = place.queue.recurring().get("fresh").await.unwrap().unwrap();
    assert_eq!(fresh.next, Some(std::time::UNIX_EPOCH + Duration::from_millis(now - 60_000)));
    assert_eq!(place.queue.counts().await.unwrap().pending, 0);
    worker.stop().await;
}

#[derive(Debug, Serialize, Deserialize)]
struct Never {}

impl Job for Never {
    const NAME: &'static str = "never";

    fn recurrence() -> Option<Recurrence> {
        Some(Schedule::cron("0 0 30 2 *").into())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Needy {
    student: u32,
}

impl Job for Needy {
    const NAME: &'static str = "needy";

    fn recurrence() -> Option<Recurrence> {
        Some(Schedule::every(Duration::from_secs(60)).into())
    }
}

macro_rules! handlers {
    ($($job:ident),+) => {$(
        impl Handler<()> for $job {
            async fn run(self, _: Scope<()>) -> Result<Completion, JobError> {
                Ok(Completion::empty())
            }
        }
    )+};
}

handlers!(Never, Needy);

#[tokio::test]
async fn one_that_cant_be_is_a_problem_of_the_builder() {
    let place = Place::shared("problems").await;
    let error = Worker::builder(&place.client).register::<Never>().register::<Needy>().build().unwrap_err();
    let [BuildProblem::Recurring { job: never, reason }, BuildProblem::Recurring { job: needy, reason: missing }] =
        error.problems()
    else {
        panic!("{error}");
    };
    assert_eq!((never.as_str(), needy.as_str()), ("never", "needy"));
    assert!(reason.contains("30 2") && missing.contains("student"), "{reason}; {missing}");
    // A worker of other queues leaves the registration to those of the job's queue.
    #[emq::job(every = "50ms", queue = "elsewhere")]
    async fn tock() {}
    let worker = Worker::builder(&place.client).register::<TockJob>().queue(place.name()).build();
    assert!(worker.is_ok());
}
