//! Looks at intervals how much there is of everything: jobs, keys, memory.

use std::{
    fs, io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use emq::{Client, Counts};
use support::{Raw, Reply};
use tokio::time::{Instant, interval, timeout};

use crate::{book::Book, jobs::QUEUE};

/// With more jobs than that waiting, the producers pause.
const FULL: u64 = 1_500;

/// How much was there at some time, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) server: u64,
    pub(crate) keys: u64,
    pub(crate) old_worker: u64,
    pub(crate) soak: u64,
}

/// Keeps the producers from enqueuing more than is worked off.
pub(crate) async fn throttle(client: Client, book: Arc<Book>) {
    let mut beat = interval(Duration::from_millis(500));
    loop {
        beat.tick().await;
        if let Some(counts) = counts(&client).await {
            book.full.store(counts.unfinished() > FULL, Ordering::Relaxed);
        }
    }
}

/// The counts of the queue; `None` while the server is away.
pub(crate) async fn counts(client: &Client) -> Option<Counts> {
    client.queue(QUEUE).ok()?.counts().await.ok()
}

/// Measures, as far as the server is there.
pub(crate) async fn measure(port: u16, old_worker: Option<u32>) -> Memory {
    let asked = timeout(Duration::from_secs(5), async {
        let mut raw = Raw::open(port).await?;
        let info = raw.try_command(&["INFO", "memory"]).await?;
        let size = raw.try_command(&["DBSIZE"]).await?;
        Ok::<_, io::Error>((info, size))
    });
    let (server, keys) = match asked.await {
        Ok(Ok((Reply::Bulk(info), Reply::Int(size)))) => {
            (field(&String::from_utf8_lossy(&info), "used_memory:"), size.unsigned_abs())
        }
        _ => (0, 0),
    };
    Memory {
        server: server / 1024,
        keys,
        old_worker: old_worker.map_or(0, resident),
        soak: resident(std::process::id()),
    }
}

pub(crate) fn head() {
    println!("soak:   time  accepted  unfinished      done      dead      keys    server  worker 0      soak");
}

/// Prints a line.
pub(crate) async fn line(begun: Instant, book: &Book, client: &Client, memory: Memory) {
    let counts = counts(client).await.unwrap_or_default();
    let Memory { server, keys, old_worker, soak } = memory;
    println!(
        "soak: {:>4} s {:>9} {:>11} {:>9} {:>9} {keys:>9} {server:>5} KiB {old_worker:>5} KiB {soak:>5} KiB",
        begun.elapsed().as_secs(),
        book.jobs().len(),
        counts.unfinished(),
        counts.completed,
        counts.dead,
    );
}

/// The resident memory of a process in KiB, where the system tells it.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "VmRSS:")
}

fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
