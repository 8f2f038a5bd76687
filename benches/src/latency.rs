//! `latency`: from the call of an enqueue to the start of the handler, beside what the machine takes for the bare steps of it.

use std::time::{Duration, Instant};

use emq::BoxError;

use tokio::{sync::mpsc, time::sleep};

use crate::{
    lab::Lab,
    live::Live,
    number::{median, percentile, shown},
    pipe::Pipe,
    settings::Settings,
    table::Table,
};

const PERCENTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// How many times, for each gap between two jobs of an idle worker.
const GAPS: [(Duration, u64); 2] = [(Duration::from_millis(5), 1_000), (Duration::from_millis(50), 200)];

const CONCURRENCIES: [usize; 2] = [1, 100];

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let mut table = head();
    for (gap, count) in GAPS {
        let count = settings.jobs(count);
        let (mut pings, mut bare) = (Vec::new(), Vec::new());
        let mut emq = CONCURRENCIES.map(|_| Vec::new());
        // In turn, since what a machine takes to wake up differs from minute to minute.
        for _ in 0..settings.rounds {
            pings.push(ping(settings, gap, count).await?);
            bare.push(wake(settings, gap, count).await?);
            for (concurrency, rounds) in CONCURRENCIES.into_iter().zip(&mut emq) {
                rounds.push(idle(settings, concurrency, gap, count).await?);
            }
        }
        row(&mut table, format!("PING, one each {gap:?}"), &pings);
        let [woken, claimed] = [0, 1].map(|at| bare.iter().map(|steps| steps[at].clone()).collect::<Vec<_>>());
        row(&mut table, format!("ZADD until BZPOPMIN returns, one each {gap:?}"), &woken);
        row(&mut table, "the same, and then a PING".into(), &claimed);
        for (concurrency, rounds) in CONCURRENCIES.into_iter().zip(&emq) {
            row(&mut table, format!("emq, {concurrency} at once, a job each {gap:?}"), rounds);
        }
    }
    println!(
        "An idle worker, in ms, beside the bare steps on raw sockets. A claim has to wait for an enqueue, for a wake and for a \
         round trip of its own:\n\n{table}"
    );

    let mut table = head();
    for concurrency in [100, 1_000] {
        let (mut rounds, mut rates) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            let (rate, delays) = loaded(settings, concurrency).await?;
            rates.push(rate);
            rounds.push(delays);
        }
        row(&mut table, format!("{concurrency} at once, {} jobs/s", shown(median(rates) / 2.0)), &rounds);
    }
    println!("At half of the jobs/s that can be enqueued and processed at the same time, in ms:\n\n{table}");
    Ok(())
}

fn head() -> Table {
    Table::new(&["", "p50", "p99", "p99.9", "jobs"])
}

/// The median of the rounds' percentiles.
fn row(table: &mut Table, label: String, rounds: &[Vec<f64>]) {
    eprintln!("bench: {label}: done");
    let of = |share: f64| shown(median(rounds.iter().map(|delays| percentile(delays, share))));
    let jobs = rounds.iter().map(Vec::len).sum::<usize>().to_string();
    table.row([label].into_iter().chain(PERCENTILES.map(of)).chain([jobs]));
}

/// A round trip on a machine that has done nothing for a while.
async fn ping(settings: &Settings, gap: Duration, count: u64) -> Result<Vec<f64>, BoxError> {
    let lab = Lab::start(settings).await;
    let mut pipe = Pipe::open(lab.port()).await?;
    let mut delays = Vec::new();
    for _ in 0..count {
        sleep(gap).await;
        let begun = Instant::now();
        pipe.call(&["PING"]).await?;
        delays.push(begun.elapsed());
    }
    Ok(in_ms(delays))
}

/// How long after one connection has set a marker another has it, which was blocked; and how long until that one has had
/// the answer to one more call, as a claim is.
async fn wake(settings: &Settings, gap: Duration, count: u64) -> Result<[Vec<f64>; 2], BoxError> {
    let lab = Lab::start(settings).await;
    let (mut producer, mut waiter, mut claimer) =
        (Pipe::open(lab.port()).await?, Pipe::open(lab.port()).await?, Pipe::open(lab.port()).await?);
    let (tell, mut told) = mpsc::unbounded_channel();
    let waiting = tokio::spawn(async move {
        for _ in 0..count {
            waiter.call(&["BZPOPMIN", "marker", "0"]).await?;
            let woken = Instant::now();
            claimer.call(&["PING"]).await?;
            let _ = tell.send([woken, Instant::now()]);
        }
        Ok::<_, std::io::Error>(())
    });
    let mut delays = [Vec::new(), Vec::new()];
    for _ in 0..count {
        sleep(gap).await;
        let begun = Instant::now();
        producer.call(&["ZADD", "marker", "0", "0"]).await?;
        let steps = told.recv().await.ok_or("the waiter ended")?;
        delays.iter_mut().zip(steps).for_each(|(delays, at)| delays.push(at - begun));
    }
    waiting.await??;
    Ok(delays.map(in_ms))
}

async fn idle(settings: &Settings, concurrency: usize, gap: Duration, count: u64) -> Result<Vec<f64>, BoxError> {
    let mut live = Live::start(settings, concurrency).await?;
    let mut delays = Vec::new();
    for _ in 0..count {
        sleep(gap).await;
        delays.push(live.one().await?);
    }
    live.stop().await?;
    Ok(in_ms(delays))
}

/// The rate that was reached, and the delays at half of it.
async fn loaded(settings: &Settings, concurrency: usize) -> Result<(f64, Vec<f64>), BoxError> {
    let time = Duration::from_millis(if settings.quick { 200 } else { 5_000 });
    let mut live = Live::start(settings, concurrency).await?;
    let rate = live.rate(time).await?;
    live.idle().await?;
    let delays = live.at_rate(rate / 2.0, time).await?;
    live.stop().await?;
    Ok((rate, in_ms(delays)))
}

fn in_ms(delays: Vec<Duration>) -> Vec<f64> {
    delays.into_iter().map(|delay| delay.as_secs_f64() * 1e3).collect()
}
