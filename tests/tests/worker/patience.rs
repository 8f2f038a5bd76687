//! A worker that can do nothing is quiet about it, and ends with an error when it is broken.
//!
//! Each of these runs in a process of its own: what is measured is that of the whole process.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use support::{Server, child, in_role};

use crate::errand::{Place, is_done, ms, start, telling, tells};

/// The time that this process has spent on its processors.
#[cfg(target_os = "linux")]
fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Counts what is logged, at the level that users have.
#[derive(Clone, Default)]
struct Log(Arc<AtomicU64>);

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(1, Ordering::SeqCst);
        io::stdout().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn open() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).init();
        log
    }

    fn lines(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs the test in a process of its own; answers whether this is it.
async fn alone(test: &str) -> bool {
    if in_role(test) {
        return true;
    }
    let ended = child(test, &[]).wait().await;
    assert!(ended.is_success(), "{ended:?}");
    false
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_without_a_server_is_neither_busy_nor_loud_and_comes_back_by_itself() {
    if !alone("patience::a_worker_without_a_server_is_neither_busy_nor_loud_and_comes_back_by_itself").await {
        return;
    }
    let log = Log::open();
    let server = Server::start().await;
    let place = Place::on(&server, "down").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    place.errand(0).await.unwrap();
    told.next().await;
    server.kill().await;
    let (busy_before, start, lines) = (busy(), Instant::now(), log.lines());
    tokio::time::sleep(ms(10_000)).await;
    let share = (busy() - busy_before).as_secs_f64() / start.elapsed().as_secs_f64();
    assert!(share < 0.10, "{:.1} % of a processor", share * 100.0);
    assert!(log.lines() - lines < 30, "{} lines", log.lines() - lines);
    server.restart().await;
    place.until(async || place.errand(1).await.is_ok()).await;
    assert_eq!(told.next().await, 1);
    worker.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_that_may_run_no_script_is_neither_busy_nor_loud_and_ends_when_told() {
    if !alone("patience::a_worker_that_may_run_no_script_is_neither_busy_nor_loud_and_ends_when_told").await {
        return;
    }
    let log = Log::open();
    let server = Server::start().await;
    let place = Place::on(&server, "denied").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    place.errand(0).await.unwrap();
    told.next().await;
    place.completed(1).await;
    let mut raw = place.raw().await;
    let (busy_before, before, lines) = (busy(), Instant::now(), log.lines());
    raw.command(&["ACL", "SETUSER", "default", "-eval", "-evalsha"]).await;
    tokio::time::sleep(ms(5_000)).await;
    let share = (busy() - busy_before).as_secs_f64() / before.elapsed().as_secs_f64();
    assert!(share < 0.10, "{:.1} % of a processor", share * 100.0);
    assert!(log.lines() - lines < 20, "{} lines", log.lines() - lines);
    // It goes on when it may again.
    raw.command(&["ACL", "SETUSER", "default", "+eval", "+evalsha"]).await;
    place.errand(1).await.unwrap();
    assert_eq!(told.next().await, 1);
    place.completed(2).await;
    raw.command(&["ACL", "SETUSER", "default", "-eval", "-evalsha"]).await;
    let stop = Instant::now();
    worker.stop().await;
    assert!(stop.elapsed() < ms(10_000), "{:?}", stop.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_of_a_demoted_server_is_neither_busy_nor_loud() {
    if !alone("patience::a_worker_of_a_demoted_server_is_neither_busy_nor_loud").await {
        return;
    }
    let log = Log::open();
    let server = Server::start().await;
    let place = Place::on(&server, "demoted").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    place.errand(0).await.unwrap();
    told.next().await;
    place.completed(1).await;
    let mut raw = place.raw().await;
    let (busy_before, before, lines) = (busy(), Instant::now(), log.lines());
    raw.line("REPLICAOF 127.0.0.1 1").await;
    tokio::time::sleep(ms(5_000)).await;
    let share = (busy() - busy_before).as_secs_f64() / before.elapsed().as_secs_f64();
    assert!(share < 0.10, "{:.1} % of a processor", share * 100.0);
    assert!(log.lines() - lines < 20, "{} lines", log.lines() - lines);
    raw.line("REPLICAOF NO ONE").await;
    place.errand(1).await.unwrap();
    assert_eq!(told.next().await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_one_of_whose_tasks_panics_ends_with_an_error() {
    if !alone("patience::a_worker_one_of_whose_tasks_panics_ends_with_an_error").await {
        return;
    }
    /// What is logged from the middle of the worker brings it down.
    struct Spiteful;
    impl io::Write for Spiteful {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            assert!(!String::from_utf8_lossy(line).contains("dropped ids"), "a subscriber that panics");
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    tracing_subscriber::fmt().with_writer(|| Spiteful).with_ansi(false).init();
    let server = Server::start().await;
    let place = Place::on(&server, "broken").await;
    let worker = place.worker(is_done()).build().unwrap();
    place.raw().await.command(&["ZADD", &place.key("pending"), "0", "JOB00000000001"]).await;
    let error = worker.run().await.unwrap_err();
    assert!(matches!(error, emq::RunError::Panicked), "{error}");
}
