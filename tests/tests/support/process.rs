//! Child processes: their roles, their events and their ends.

use std::env;
use std::time::Duration;

use support::process::Ended;
use support::{child, event, in_role};
use tokio::signal::unix::{SignalKind, signal};

/// Says what the test wants to hear, and ends at SIGTERM.
#[tokio::test]
async fn role_main() {
    if !in_role("process::role_main") {
        return;
    }
    let mut terminated = signal(SignalKind::terminate()).unwrap();
    println!("noise");
    event(&format!("ready {}", std::process::id()));
    if let Ok(greeting) = env::var("EMQ_TEST_GREETING") {
        event(&greeting);
    }
    assert!(env::var("EMQ_TEST_PANIC").is_err(), "on purpose");
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        tokio::select! {
            _ = terminated.recv() => break,
            _ = tick.tick() => event("tick"),
        }
    }
    event("bye");
}

/// The signals as Linux and macOS number them.
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

#[tokio::test]
async fn a_role_does_nothing_unless_it_is_called_for() {
    assert!(!in_role("process::role_main"));
    let ended = child("process::a_role_that_is_not_it", &[]).wait().await;
    assert!(ended.is_success(), "{ended:?}");
}

#[tokio::test]
async fn events_come_in_order_and_the_environment_goes_along() {
    let mut worker = child("process::role_main", &[("EMQ_TEST_GREETING", "hello you")]);
    let pid = worker.wait_line("ready").await;
    assert_eq!(pid, worker.pid().to_string());
    assert_eq!(worker.wait_line("hello").await, "you");
    worker.terminate();
    worker.wait_line("bye").await;
    assert_eq!(worker.wait().await, Ended::Code(0));
}

#[tokio::test]
async fn a_killed_child_says_nothing_more() {
    let mut worker = child("process::role_main", &[]);
    worker.wait_line("tick").await;
    assert_eq!(worker.kill().await, Ended::Signal(SIGKILL));
}

/// Waits without looking at any signal.
#[test]
fn deaf_main() {
    if in_role("process::deaf_main") {
        event("ready");
        std::thread::sleep(Duration::from_secs(600));
    }
}

#[tokio::test]
async fn a_signal_without_a_handler_ends_the_child() {
    let mut deaf = child("process::deaf_main", &[]);
    deaf.wait_line("ready").await;
    deaf.terminate();
    assert_eq!(deaf.wait().await, Ended::Signal(SIGTERM));
}

#[tokio::test]
async fn a_frozen_child_is_silent_until_thawed() {
    let mut worker = child("process::role_main", &[]);
    worker.wait_line("tick").await;
    worker.freeze();
    // What it printed before it froze may still be on its way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    worker.lines();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(worker.lines(), Vec::<String>::new());
    worker.thaw();
    worker.wait_line("tick").await;
}

#[tokio::test]
async fn a_panic_in_the_child_is_its_failure() {
    let envs = [("EMQ_TEST_PANIC", "1"), ("RUST_BACKTRACE", "0")];
    let worker = child("process::role_main", &envs);
    let ended = worker.wait().await;
    assert!(!ended.is_success(), "{ended:?}");
}

#[tokio::test]
#[should_panic(expected = "it ended before the line \"never\"")]
async fn waiting_for_a_line_of_a_child_that_ended_fails() {
    let mut ended = child("process::a_role_that_is_not_it", &[]);
    ended.wait_line("never").await;
}
