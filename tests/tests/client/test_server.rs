//! The private server of the feature `testing`, and programs that are none.

use emq::{Client, testing::TestServer};
use support::{child, event, in_role};

use crate::common::Work;

/// Starts the server that the environment names, and tells how that went.
#[tokio::test]
async fn role_start() {
    if !in_role("test_server::role_start") {
        return;
    }
    match TestServer::start().await {
        Ok(server) => {
            let client = Client::connect(server.url()).await.unwrap();
            let id = client.enqueue(Work::default()).await.unwrap().id();
            event(&format!("it took {id}"));
        }
        Err(error) => event(&format!("it said: {error}")),
    }
}

#[tokio::test]
async fn a_program_that_is_no_server_is_an_error_that_says_so() {
    for (program, expected) in [
        ("", "no valkey-server or redis-server was found"),
        ("/no/such/program", "no valkey-server or redis-server was found"),
        ("/", "the server can't be started: "),
        ("/dev/null", "the server can't be started: "),
        ("false", "the server ended at once: "),
        ("true", "the server ended at once: "),
    ] {
        let mut child = child("test_server::role_start", &[("EMQ_SERVER", program)]);
        let said = child.wait_line("it").await;
        assert!(said.starts_with(&format!("said: {expected}")), "{program:?} {said}");
        assert!(child.wait().await.is_success());
    }
}

#[tokio::test]
async fn the_server_of_a_test_takes_jobs_and_ends_with_it() {
    let mut child = child("test_server::role_start", &[]);
    assert!(child.wait_line("it").await.starts_with("took JOB"));
    assert!(child.wait().await.is_success());
}
