//! A worker that is killed between what it asked for and what it was told.

use support::{
    Proxy, Server,
    proxy::{Command, When},
};

use crate::office::{Chore, Office};

/// A claim is about rows and what is pending, and about what workers have claimed.
fn is_claim(command: &Command) -> bool {
    let is_about_pending = command.arg(3).ends_with(b":job:") && command.arg(4).ends_with(b":pending");
    is_about_pending && (5..16).any(|at| command.arg(at).ends_with(b":claims"))
}

/// A completion is about how many there were, whether it is sent by itself or with a claim. The short form of an exchange
/// names the same eleven keys where it only claims; the ids of what is done stand behind its five arguments.
fn is_completion(command: &Command) -> bool {
    let is_about_completed = (3..17).any(|at| command.arg(at).ends_with(b":metrics:completed"));
    let only_claims = command.arg(2) == b"11" && command.arg(3 + 11 + 5).is_empty();
    command.name().starts_with("EVAL") && is_about_completed && !only_claims
}

/// The office, and a line to it of one worker's own.
async fn office(server: &Server, label: &str) -> (Office, Proxy, String) {
    let proxy = Proxy::start(server.port());
    let url = proxy.url();
    (Office::on(server, label).await, proxy, url)
}

#[tokio::test]
async fn a_job_whose_worker_is_killed_before_it_heard_of_its_claim_runs_elsewhere() {
    let (office, proxy, url) = office(support::server().await, "claimed").await;
    // Killed before its own lease can end, on any machine; and then the lease is ended by hand.
    let worker = office.worker_with(&[("EMQ_TEST_URL", &url), ("EMQ_TEST_LEASE", "60000")]).await;
    proxy.lose_reply(is_claim, When::Every(1));
    let id = office.enqueue(Chore::Quick).await;
    office.until(async || office.queue.counts().await.unwrap().active == 1).await;
    worker.kill().await;
    office.end_lease(id).await;
    let mut next = office.worker().await;
    next.wait_line(&format!("ends {id} 2")).await;
    office.completed(1).await;
    next.terminate();
    assert!(next.wait().await.is_success());
}

#[tokio::test]
async fn a_job_whose_worker_is_killed_before_its_completion_arrives_runs_again() {
    let (office, proxy, url) = office(support::server().await, "unsettled").await;
    proxy.cut_request(is_completion, When::Every(1));
    let mut worker = office.worker_with(&[("EMQ_TEST_URL", &url), ("EMQ_TEST_LEASE", "60000")]).await;
    let id = office.enqueue(Chore::Quick).await;
    worker.wait_line(&format!("ends {id} 1")).await;
    proxy.wait_cuts(1).await;
    worker.kill().await;
    office.end_lease(id).await;
    let mut next = office.worker().await;
    next.wait_line(&format!("ends {id} 2")).await;
    office.completed(1).await;
    next.terminate();
    assert!(next.wait().await.is_success());
}

#[tokio::test]
async fn a_job_whose_worker_is_killed_after_its_completion_arrived_is_done() {
    let (office, proxy, url) = office(support::server().await, "settled").await;
    proxy.lose_reply(is_completion, When::Every(1));
    let mut worker = office.worker_with(&[("EMQ_TEST_URL", &url)]).await;
    let id = office.enqueue(Chore::Quick).await;
    worker.wait_line(&format!("ends {id} 1")).await;
    office.completed(1).await;
    worker.kill().await;
    let mut next = office.worker().await;
    let other = office.enqueue(Chore::Quick).await;
    next.wait_line(&format!("ends {other} 1")).await;
    office.completed(2).await;
    next.terminate();
    next.wait_line("completed 1").await;
    let counts = office.queue.counts().await.unwrap();
    assert_eq!((counts.completed, counts.unfinished()), (2, 0), "each once");
}
