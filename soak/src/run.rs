//! A soak from beginning to end.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use emq::{BoxError, Client, Upserted};
use support::{Proxy, Raw, Server};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    book::Book,
    census::{self, Known},
    chaos::{Chaos, Hand},
    checks::{self, Violation},
    event::Event,
    facts::Facts,
    ghost::Ghost,
    jobs::{QUEUE, RETENTION, SCRAP},
    lanes,
    ledger::{Ledger, unix_ms},
    memory,
    operator::{self, Operator},
    orders::Orders,
    pauses::Gatekeeper,
    producer::Producer,
    report::{self, Summary},
    slots,
    strikes::Strike,
    watch::{self, Watch},
    worker::builder,
    workers::{WORKERS, Workers},
};

/// How many producers there are; the last goes through a proxy.
const PRODUCERS: u64 = 4;

/// How many jobs there have to be at least; a quiet machine has a hundred times as many.
const LEAST_PER_SECOND: u64 = 1;

/// How long an enqueue may be unknown once nothing fails any more.
const SETTLE: Duration = Duration::from_secs(120);

/// At the end, so long may pass in which no job is finished: the workers that a strike has hit are back by then, even on
/// a machine that is busy with other things.
const STANDSTILL: Duration = Duration::from_secs(60);

/// How long after its last event in the ledger a job may have been completed.
const COMPLETION_LAG: Duration = Duration::from_secs(30);

/// Soaks for so long, and returns whether all was well.
pub(crate) async fn run(time: Duration, seed: u64) -> Result<bool, BoxError> {
    let folder = tempfile::Builder::new().prefix("emq-soak-").tempdir()?;
    let clean = soak(folder.path(), time, seed).await;
    if !matches!(clean, Ok(true)) {
        println!("soak: the ledger is kept in {}", folder.keep().display());
        println!("soak: the same strikes and jobs again: script/soak {} --seed {seed}", time.as_secs_f64() / 60.0);
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
    let operator = Operator::connect(&server.url(), Arc::clone(&book)).await?;
    lanes::set(&client).await?;
    slots::register(&client.queue(QUEUE)?, &book, Upserted::Created).await?;
    let memory_before = memory::Server::ask(server.port()).await;
    let mut producers = JoinSet::new();
    for number in 0..PRODUCERS {
        let is_direct = number + 1 < PRODUCERS;
        let url = if is_direct { server.url() } else { for_producer.url() };
        let operator = is_direct.then(|| operator.clone());
        let producer = Producer::connect(&url, Arc::clone(&book), Orders::new(seed, number), operator).await?;
        producers.spawn(producer.run());
    }
    let workers = Workers::start(for_workers.url(), &path);
    let proxies = [for_workers, for_producer];
    let records = (ledger.clone(), Arc::clone(&book));
    let gatekeeper = Gatekeeper::connect(&server.url(), Arc::clone(&book)).await?;
    let hands = vec![
        Hand::of(operator::STRIKES, |told| operator.run(told)),
        Hand::of(&[Strike::Pause], |told| gatekeeper.run(told)),
    ];
    let mut chaos = Chaos::new(Arc::clone(&server), proxies, workers, hands, records, seed);
    let throttle = tokio::spawn(watch::throttle(client.clone(), Arc::clone(&book)));
    let ghost = tokio::spawn(Ghost::new(&client, Ledger::open(&path)?, Arc::clone(&book), seed)?.run());

    let mut watch = Watch::new(client.clone(), Arc::clone(&book), ledger.clone(), server.port());
    let old_worker = chaos.workers.oldest();
    while begun.elapsed() < time {
        chaos.step().await?;
        watch.look(old_worker).await;
    }
    book.over.store(true, Ordering::Relaxed);
    chaos.stop().await?;
    ledger.strike("the end".into()).await?;
    if timeout(SETTLE, all_end(&mut producers)).await.map_err(|_| "an enqueue is still unknown")?.is_err() {
        book.violation("a producer panicked".into());
    }
    let last_slots = slots::remove(&client.queue(QUEUE)?).await?;
    let drained = drain(&client).await;
    let drained_at = census::server_time(server.port()).await?;
    throttle.abort();
    ghost.abort();
    watch.print().await;
    let Chaos { workers, done, .. } = chaos;
    workers.stop(&book).await;

    let facts = Facts::gather(&book, &ledger, &client, last_slots).await?;
    let mut violations = checks::all(&facts, &book);
    let mut add = |what| violations.push(Violation::new(what));
    if !drained {
        add(format!("there are jobs left, and none was finished for {STANDSTILL:?}"));
    }
    let told = ledger.told().await?;
    if told.dropped > 0 {
        add(format!("workers found {} ids without a job", told.dropped));
    }
    // A worker that was killed before it told anything has claims and a number as well.
    let strikes: u64 = done.values().sum();
    let processes = strikes + WORKERS as u64 + PRODUCERS + 3;
    let known = Known { facts: &facts, late: late(facts.events.values()), processes, drained_at };
    let census = census::take(server.port(), &known).await?;
    census.violations.iter().cloned().for_each(&mut add);
    // Else it would pass for a soak that nothing came through.
    if (facts.jobs.len() as u64) < LEAST_PER_SECOND * time.as_secs() {
        add(format!("no more than {} jobs came through", facts.jobs.len()));
    }
    let memory_after = memory::Server::ask(server.port()).await;
    let grown = [memory::growth(&watch.looks), memory_before.growth(&memory_after)];
    grown.into_iter().flatten().for_each(&mut add);
    obliterate(&client, server.port()).await?.into_iter().for_each(&mut add);
    report::histories(&violations, &facts, &ledger, &client).await?;
    client.close().await;
    let summary = Summary {
        seed,
        took: begun.elapsed(),
        facts: &facts,
        violations: violations.len(),
        book: &book,
        told,
        census: &census,
        strikes: &done,
        looks: &watch.looks,
        server: [memory_before, memory_after],
    };
    print!("{summary}");
    Ok(violations.is_empty())
}

/// Throws a whole queue away, and answers what is left of it.
async fn obliterate(client: &Client, port: u16) -> Result<Option<String>, BoxError> {
    client.queue(SCRAP)?.obliterate().all().await?;
    let left = census::keys(&mut Raw::open(port).await?, &format!("emq:{{{SCRAP}}}:*")).await?;
    Ok((!left.is_empty()).then(|| format!("of a queue that was obliterated there is {left:?}")))
}

async fn all_end(producers: &mut JoinSet<()>) -> Result<(), JoinError> {
    while let Some(ended) = producers.join_next().await {
        ended?;
    }
    Ok(())
}

/// Waits until nothing is left to do; `false` if nothing is done any more before.
async fn drain(client: &Client) -> bool {
    let (mut fewest, mut since) = (u64::MAX, Instant::now());
    while since.elapsed() < STANDSTILL {
        let left = watch::left(client).await;
        if left == Some(0) {
            return true;
        }
        if let Some(left) = left.filter(|left| *left < fewest) {
            (fewest, since) = (left, Instant::now());
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

/// How many jobs had anything noted of them so late that their results may still be kept.
fn late<'a>(histories: impl Iterator<Item = &'a Vec<Event>>) -> u64 {
    let begin = unix_ms(SystemTime::now() - RETENTION - COMPLETION_LAG);
    histories.filter(|events| events.last().is_some_and(|event| event.time >= begin)).count() as u64
}
