//! Workers that come and go in one process.

use std::{env, fs, time::Duration};

use emq::{Client, Worker};
use support::{Raw, Server, child, event, in_role};

use crate::office::{Chore, LEASE, Office, Task};

/// How many threads of this process renew leases; a name is cut to 15 bytes by the system.
fn lease_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "emq-lease"))
        .count()
}

/// Ten tasks that start and stop five workers each, in a process where nobody else has threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_stop_main() {
    if !in_role("start_stop::start_stop_main") {
        return;
    }
    let client = Client::connect(env::var("EMQ_TEST_URL").unwrap()).await.unwrap();
    let queue = env::var("EMQ_TEST_QUEUE").unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..10_u64 {
        let (client, queue) = (client.clone(), queue.clone());
        tasks.spawn(async move {
            for n in 0..5 {
                let worker = Worker::builder(&client).register::<Task>().queue(&queue).lease(LEASE).build().unwrap();
                let handle = worker.handle();
                let run = tokio::spawn(worker.run());
                tokio::time::sleep(Duration::from_millis((task * 7 + n * 13) % 40)).await;
                // Some are dropped in the middle of it, some are told.
                if n == 4 {
                    run.abort();
                } else {
                    handle.shutdown();
                    run.await.unwrap().unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
    event("done");
    // A thread ends when it has noticed.
    while lease_threads() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    event("alone");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn workers_that_come_and_go_fifty_times_leave_no_thread_and_no_connection() {
    let server = Server::start().await;
    let office = Office::on(&server, "come_and_go").await;
    for _ in 0..50 {
        office.enqueue(Chore::Quick).await;
    }
    let before = connections(&server).await;
    let variables = [("EMQ_TEST_URL", server.url()), ("EMQ_TEST_QUEUE", office.queue.name().to_string())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut process = child("start_stop::start_stop_main", &variables);
    process.wait_line("done").await;
    process.wait_line("alone").await;
    // The client of the process has one connection.
    office.until(async || connections(&server).await == before + 1).await;
    process.kill().await;
    let last = office.worker().await;
    office.completed(50).await;
    last.terminate();
    assert!(last.wait().await.is_success());
}

async fn connections(server: &Server) -> usize {
    Raw::connect(server).await.line("CLIENT LIST").await.text().lines().count()
}
