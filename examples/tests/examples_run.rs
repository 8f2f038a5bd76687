//! The examples run, end, and print what they say they do.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use emq::testing::TestServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

/// How long an example may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn hello_greets_and_ends_when_told_to() {
    let server = TestServer::start().await.unwrap();
    let mut hello = example("hello", &server).spawn().unwrap();
    let mut lines = BufReader::new(hello.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.starts_with("Hello, Ada! (job JOB"), "{line}");
    let pid = Pid::from_raw(hello.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let status = timeout(PATIENCE, hello.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn custom_layer_runs_all_jobs_and_stops_the_slow_one() {
    let text = run("custom_layer").await;
    for page in 1..=4 {
        assert!(text.contains(&format!("page {page}\n")), "{text}");
    }
    assert_eq!(text.matches("print: done after ").count(), 4, "{text}");
    assert!(text.contains("daydream: failed after "), "{text}");
    assert!(text.ends_with("daydream is dead: request timed out\n"), "{text}");
}

#[tokio::test]
async fn unique_says_what_became_of_each_enqueue() {
    let text = run("unique").await;
    let expected = "\
No worker runs: the job that waits takes over what comes.
revision 1: a job of its own
revision 2: taken over by the job that waits
revision 3: a duplicate, nothing was added
  indexing revision 2
It runs: what comes now runs once after it, as the last one says.
revision 4: parked until the job that runs has ended
revision 5: taken over by the job that waits
  indexing revision 5
At most one in an hour, done or not.
revision 6: a job of its own
  indexing revision 6
revision 7: a duplicate, nothing was added
When nothing has come for a second, and after a minute in any case.
revision 8: a job of its own
revision 9: taken over by the job that waits
revision 10: taken over by the job that waits
  indexing revision 10
";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn own_loop_completes_retries_and_buries() {
    let text = run("own_loop").await;
    let expected = "\
ada@example.org: try 1
  sent
greylisted@example.org: try 1
  again in 200ms: 451 try again later
nobody: try 1
  buried: that is no address
greylisted@example.org: try 2
  sent
";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn fair_tenants_draws_that_nobody_waits_for_the_largest() {
    let text = run("fair_tenants").await;
    assert!(text.starts_with("before: north 60, east 18, "), "{text}");
    let line = |tenant: &str| text.lines().find(|line| line.trim_start().starts_with(tenant)).unwrap().to_owned();
    for (tenant, jobs) in [("north", 60), ("east", 18), ("south", 6), ("west", 6)] {
        assert_eq!(line(tenant).matches('#').count(), jobs, "{text}");
    }
    // With three jobs a turn, the eighteen of East are done before half of North's.
    let last = |tenant: &str| line(tenant).rfind('#').unwrap();
    assert!(last("east") < 60 && last("south") < 60 && last("north") > 80, "{text}");
}

#[tokio::test]
async fn rate_limit_sends_all_and_waits_when_it_is_told_to() {
    let text = run("rate_limit").await;
    assert!(text.starts_with("40 emails, 30 per 1s, bursts of 5\n    0 ms #####"), "{text}");
    assert!(text.contains(" 429\n"), "{text}");
    assert!(text.ends_with("40 sent, 1 told to wait, 0 failed\n"), "{text}");
}

#[tokio::test]
async fn recurring_runs_its_slots_and_one_beside_them() {
    let server = TestServer::start().await.unwrap();
    let output = timeout(PATIENCE, example("recurring", &server).arg("2").output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("sales-report runs Some(\"report\"), next at Some("), "{text}");
    assert!(text.contains("the report of sales: its slot was None ago\n"), "{text}");
    assert_eq!(text.matches("tick: its slot was Some(").count(), 2, "{text}");
}

#[tokio::test]
async fn progress_is_shown_a_result_waited_for_and_a_job_cancelled() {
    let expected = "\
0 of 500 rows
100 of 500 rows
200 of 500 rows
300 of 500 rows
400 of 500 rows
students.csv is in: 500 rows
the log says: everything.csv has 18446744073709551615 rows
cancel: Asked
and it is gone
1 completed, 1 cancelled
";
    assert_eq!(run("progress").await, expected);
}

#[tokio::test]
async fn two_crates_hands_the_job_over() {
    let text = run("two_crates").await;
    assert!(
        text.starts_with("the second is a duplicate of the first: true\nto ada@example.org in any language: Welcome")
    );
}

/// Runs an example on a server of its own, and answers what it printed.
async fn run(name: &str) -> String {
    let server = TestServer::start().await.unwrap();
    let output: Output = timeout(PATIENCE, example(name, &server).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn example(name: &str, server: &TestServer) -> Command {
    let mut example = Command::new(program(name));
    example.env("EMQ_URL", server.url()).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    example
}

/// Where cargo has put an example: beside the folder of this test.
fn program(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(name).with_extension(env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{} isn't there; `cargo test -p emq-examples` builds it", program.display());
    program
}
