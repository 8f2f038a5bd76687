//! The runtime of a worker goes away under it, as if the process had been killed, and the process goes on.

use std::time::{Duration, Instant};

use emq::{Client, JobContext, Worker};
use support::Server;
use tokio::runtime::{Builder, Runtime};

use crate::errand::{Does, Errand, Place, hangs, ms, start, telling, tells};

/// Runs a worker in a runtime of its own until it has a job in hand, and then does away with the runtime.
async fn dropped(runtime: Runtime, away: impl FnOnce(Runtime) + Send + 'static) {
    let server = Server::start().await;
    let place = Place::on(&server, "runtime").await;
    let before = connections(&place).await;
    let (url, queue) = (server.url(), place.name().to_owned());
    let (tell, mut told) = telling();
    let (cancelled, mut heard) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell(n);
        let (guard, cancelled) = (Guard(ctx), cancelled.clone());
        async move {
            let guard = guard;
            std::future::pending::<()>().await;
            cancelled.tell(guard.0.id());
            unreachable!()
        }
    });
    place.errand(7).await.unwrap();
    let thread = std::thread::spawn(move || {
        let client = runtime.block_on(async {
            let client = Client::builder(url).command_timeout(ms(1_000)).retry_for(ms(1_000)).connect().await.unwrap();
            let builder = Worker::builder(&client).state(does).register::<Errand>().queue(queue).lease(ms(1_000));
            tokio::spawn(builder.build().unwrap().run());
            assert_eq!(told.next().await, 7);
            client
        });
        let begin = Instant::now();
        away(runtime);
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        client
    });
    let client = tokio::task::spawn_blocking(|| thread.join()).await.unwrap().expect("it goes away quietly");
    assert!(heard.rest().is_empty(), "the run didn't go on");
    place.until(async || connections(&place).await == before).await;

    // The job comes back, to whoever is there.
    let (tell, mut told) = telling();
    let next = start(place.worker(tells(&tell)).beat(ms(100)));
    assert_eq!(told.next().await, 7);
    place.completed(1).await;
    next.stop().await;

    // What was connected there is of no use elsewhere, and says so.
    let begin = Instant::now();
    client.queue(place.name()).unwrap().counts().await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// What a handler holds across its awaits; it uses its context when it is dropped, whatever is left of the runtime.
struct Guard(JobContext);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.is_cancelled();
    }
}

/// How many connections the server has, but for the one that asks.
async fn connections(place: &Place) -> usize {
    place.raw().await.line("CLIENT LIST").await.text().lines().count() - 1
}

#[tokio::test]
async fn a_runtime_that_is_dropped_under_a_worker_takes_it_along_and_its_jobs_come_back() {
    dropped(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(), drop).await;
}

#[tokio::test]
async fn a_runtime_of_one_thread_that_is_dropped_does_the_same() {
    dropped(Builder::new_current_thread().enable_all().build().unwrap(), drop).await;
}

#[tokio::test]
async fn a_runtime_that_is_shut_down_in_the_background_does_the_same() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    dropped(runtime, Runtime::shutdown_background).await;
}

/// The worker is driven by hand, so it outlives the runtime, and is dropped after it.
#[tokio::test]
async fn a_run_that_is_dropped_after_its_runtime_harms_nobody() {
    let server = Server::start().await;
    let place = Place::on(&server, "late").await;
    place.errand(7).await.unwrap();
    let (url, queue) = (server.url(), place.name().to_owned());
    let (tell, mut told) = telling();
    let does = hangs(&tell);
    let thread = std::thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(Client::connect(url)).unwrap();
        let builder = Worker::builder(&client).state(does).register::<Errand>().queue(queue).lease(ms(1_000));
        let mut run = Box::pin(builder.build().unwrap().run());
        runtime.block_on(async {
            tokio::select! {
                _ = &mut run => unreachable!(),
                n = told.next() => assert_eq!(n, 7),
            }
        });
        drop(runtime);
        drop(run);
        drop(client);
    });
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap().expect("it goes quietly");
    let (tell, mut told) = telling();
    let next = start(place.worker(tells(&tell)).beat(ms(100)));
    assert_eq!(told.next().await, 7);
    next.stop().await;
}
