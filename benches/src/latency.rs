//! `latency`: from the call of an enqueue to the start of the handler.

use std::time::Duration;

use emq::BoxError;

use crate::{
    live::Live,
    number::{median, percentile, shown},
    settings::Settings,
    table::Table,
};

const PERCENTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// How many times, for each gap between two jobs of an idle worker.
const GAPS: [(Duration, u64); 2] = [(Duration::from_millis(5), 1_000), (Duration::from_millis(50), 200)];

const CONCURRENCIES: [usize; 2] = [1, 100];

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let mut table = head();
    for concurrency in CONCURRENCIES {
        for (gap, count) in GAPS {
            let mut rounds = Vec::new();
            for _ in 0..settings.rounds {
                rounds.push(idle(settings, concurrency, gap, settings.jobs(count)).await?);
            }
            row(&mut table, format!("{concurrency} at once, a job each {gap:?}"), &rounds);
        }
    }
    println!("An idle worker, in ms:\n\n{table}");

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

async fn idle(settings: &Settings, concurrency: usize, gap: Duration, count: u64) -> Result<Vec<f64>, BoxError> {
    let mut live = Live::start(settings, concurrency).await?;
    let mut delays = Vec::new();
    for _ in 0..count {
        tokio::time::sleep(gap).await;
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
