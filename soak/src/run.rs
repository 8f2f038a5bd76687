//! A soak from beginning to end.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{BoxError, Client};
use support::{Proxy, Server};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    book::Book,
    census,
    chaos::Chaos,
    ghost::Ghost,
    ledger::Ledger,
    producer::Producer,
    report::{self, Summary},
    verdict::Verdict,
    watch::{self, Memory},
    worker::builder,
    workers::{WORKERS, Workers},
};

/// How many producers there are; the last goes through a proxy.
const PRODUCERS: u64 = 4;

/// How many jobs there have to be at least; a slow machine has ten times as many.
const LEAST_PER_SECOND: u64 = 5;

/// How long what is left may take at the end.
const DRAIN: Duration = Duration::from_secs(120);

const LINE_EVERY: Duration = Duration::from_secs(15);

/// Soaks for so long, and returns whether all was well.
pub(crate) async fn run(time: Duration, seed: u64) -> Result<bool, BoxError> {
    let folder = tempfile::Builder::new().prefix("emq-soak-").tempdir()?;
    let clean = soak(folder.path(), time, seed).await;
    if !matches!(clean, Ok(true)) {
        println!("soak: the ledger is kept in {}", folder.keep().display());
    }
    clean
}

async fn soak(folder: &Path, time: Duration, seed: u64) -> Result<bool, BoxError> {
    let begun = Instant::now();
    let path = folder.join("ledger.db");
    let ledger = Ledger::open(&path)?;
    let book = Arc::new(Book::default());
    let server = Server::builder().append_only(true).config("appendfsync", "always").start().await;
    let server = Arc::new(server);
    println!("soak: seed {seed}, {} s, with {}", time.as_secs(), server.program().display());

    let for_workers = Proxy::start(server.port());
    let for_producer = Proxy::start(server.port());
    let client = builder(&server.url()).connect().await?;
    let mut producers = JoinSet::new();
    for number in 0..PRODUCERS {
        let url = if number + 1 == PRODUCERS { for_producer.url() } else { server.url() };
        producers.spawn(Producer::connect(&url, Arc::clone(&book), seed.wrapping_add(number + 1)).await?.run());
    }
    let workers = Workers::start(for_workers.url(), &path);
    let proxies = [for_workers, for_producer];
    let mut chaos = Chaos::new(Arc::clone(&server), proxies, workers, ledger.clone(), Arc::clone(&book), seed);
    let throttle = tokio::spawn(watch::throttle(client.clone(), Arc::clone(&book)));

    let ghost = tokio::spawn(Ghost::new(&client, Ledger::open(&path)?, Arc::clone(&book), seed)?.run());

    let mut memory = Vec::new();
    watch::head();
    let mut next_line = begun + LINE_EVERY;
    while begun.elapsed() < time {
        chaos.step().await?;
        if Instant::now() >= next_line {
            memory.push(look(begun, &book, &client, &server, &chaos).await);
            next_line += LINE_EVERY;
        }
    }
    ledger.strike("the end".into()).await?;
    book.over.store(true, Ordering::Relaxed);
    chaos.stop().await;
    if timeout(DRAIN, all_end(&mut producers)).await.map_err(|_| "an enqueue is still unknown")?.is_err() {
        book.violation("a producer panicked".into());
    }
    let drained = drain(&client).await;
    throttle.abort();
    ghost.abort();
    memory.push(look(begun, &book, &client, &server, &chaos).await);
    let Chaos { workers, done, .. } = chaos;
    workers.stop(&book).await;

    let mut verdict = Verdict::draw_up(&book, &ledger, &client).await?;
    if !drained {
        verdict.add(None, format!("there are jobs left after {DRAIN:?}"));
    }
    let told = ledger.told().await?;
    if told.dropped > 0 {
        verdict.add(None, format!("workers found {} ids without a job", told.dropped));
    }
    let jobs = book.jobs().clone();
    // A worker that was killed before it told anything has claims and a number as well.
    let strikes: u64 = done.values().sum();
    let processes = strikes + WORKERS as u64 + PRODUCERS + 1;
    let census = census::take(server.port(), &jobs, processes).await?;
    for why in &census.violations {
        verdict.add(None, why.clone());
    }
    // Else it would pass for a soak that nothing came through.
    if verdict.accepted < LEAST_PER_SECOND * time.as_secs() {
        verdict.add(None, format!("no more than {} jobs came through", verdict.accepted));
    }
    for why in growth(&memory) {
        verdict.add(None, why);
    }
    report::histories(&verdict, &ledger, &jobs, &client).await?;
    client.close().await;
    let took = begun.elapsed();
    print!("{}", Summary { seed, took, verdict: &verdict, book: &book, told, census: &census, strikes: &done, memory });
    Ok(verdict.violations.is_empty())
}

async fn look(begun: Instant, book: &Book, client: &Client, server: &Server, chaos: &Chaos) -> Memory {
    let memory = watch::measure(server.port(), chaos.workers.pids().first().copied()).await;
    watch::line(begun, book, client, memory).await;
    memory
}

async fn all_end(producers: &mut JoinSet<()>) -> Result<(), JoinError> {
    while let Some(ended) = producers.join_next().await {
        ended?;
    }
    Ok(())
}

/// Waits until nothing is left to do; `false` if that takes too long.
async fn drain(client: &Client) -> bool {
    let deadline = Instant::now() + DRAIN;
    while Instant::now() < deadline {
        if watch::counts(client).await.is_some_and(|counts| counts.unfinished() == 0) {
            return true;
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

/// What has grown grossly. The numbers are far above what a soak of hours has, and far below what a leak makes of them.
fn growth(memory: &[Memory]) -> Vec<String> {
    let mut grown = Vec::new();
    let Some(last) = memory.last() else { return grown };
    let allowed = 64 * 1024 + 4 * last.keys;
    if last.server > allowed {
        grown.push(format!("the server uses {} KiB for {} keys", last.server, last.keys));
    }
    // After the first minute everything has been used once.
    if let Some(early) = memory.get(3)
        && last.old_worker > 2 * early.old_worker + 32 * 1024
    {
        grown.push(format!("a worker has grown from {} to {} KiB", early.old_worker, last.old_worker));
    }
    grown
}
