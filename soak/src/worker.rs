//! A worker process.

use std::{env, panic, path::Path, time::Duration};

use emq::{BoxError, Client, Keep, Worker, WorkerHandle, shutdown_signal};
use tokio::{
    sync::watch,
    time::{interval, sleep, timeout},
};

use crate::{
    jobs::{HangJob, MEANT, QUEUE, SCRAP, TickJob, WorkJob},
    ledger::Ledger,
};

/// The variables of the environment that a worker is told by.
pub(crate) const URL: &str = "EMQ_SOAK_URL";
pub(crate) const LEDGER: &str = "EMQ_SOAK_LEDGER";

/// Short, so that the jobs of a killed worker are soon given to another.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);
const BEAT: Duration = Duration::from_millis(150);
const CONCURRENCY: usize = 16;

/// Works until it is told to end, or killed.
pub(crate) async fn run() -> Result<(), BoxError> {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let message = panicked.payload();
        let message = message.downcast_ref::<String>().map(String::as_str).or(message.downcast_ref::<&str>().copied());
        if !message.is_some_and(|message| message.ends_with(MEANT)) {
            before(panicked);
        }
    }));
    let ledger = Ledger::open(Path::new(&env::var(LEDGER)?))?;
    let url = env::var(URL)?;
    // From the very start, and once: a signal is told to those alone who wait for it when it comes.
    let (told, stop) = watch::channel(false);
    tokio::spawn(async move {
        shutdown_signal().await;
        told.send_replace(true);
        told.closed().await;
    });
    let client = tokio::select! {
        client = connect(&url) => client,
        () = told_to(stop.clone()) => return Ok(()),
    };
    work(&client, &ledger, stop).await?;
    // What is under way then is nothing that the soak waits for.
    let _ = timeout(Duration::from_secs(5), client.close()).await;
    Ok(())
}

async fn told_to(mut stop: watch::Receiver<bool>) {
    // An error means that nobody is left to tell it.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn work(client: &Client, ledger: &Ledger, stop: watch::Receiver<bool>) -> Result<(), BoxError> {
    let worker = Worker::builder(client)
        .state(ledger.clone())
        .register::<WorkJob>()
        .register::<HangJob>()
        .register::<TickJob>()
        .queue(QUEUE)
        .queue(SCRAP)
        .queue_weight(QUEUE, 3)
        .concurrency(CONCURRENCY)
        .lease(LEASE)
        .beat(BEAT)
        .grace(Duration::from_secs(2))
        // However often a worker dies under a job, the job isn't to blame here.
        .max_stalled(None)
        .keep_dead(Keep { count: 1_000_000, ..Keep::default() })
        .build()?;
    let notes = tokio::spawn(tell(worker.handle(), ledger.clone()));
    let stats = worker.run_until(told_to(stop)).await?;
    notes.abort();
    ledger.tell(stats).await?;
    Ok(())
}

/// Connects, through whatever is done to the connection meanwhile.
async fn connect(url: &str) -> Client {
    loop {
        match builder(url).connect().await {
            Ok(client) => return client,
            Err(error) => tracing::info!(%error, "no connection yet"),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// A client that waits for no answer for long: some never come.
pub(crate) fn builder(url: &str) -> emq::ClientBuilder {
    Client::builder(url).connect_timeout(Duration::from_secs(1)).command_timeout(Duration::from_secs(1))
}

async fn tell(worker: WorkerHandle, ledger: Ledger) {
    let mut beat = interval(Duration::from_millis(500));
    loop {
        beat.tick().await;
        // It is told again.
        let _ = ledger.tell(worker.stats()).await;
    }
}
