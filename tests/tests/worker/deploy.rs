//! A rolling deploy: workers of an older release run the texts that they have beside those of this one.

use std::{fs, path::Path};

use support::{Raw, Reply, Server};

use crate::errand::{Place, is_done, ms, start};

/// A script as a release before this one may have had it, with its snippets in front.
fn older(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lua");
    let read = |name: &str| fs::read_to_string(folder.join(format!("{name}.lua"))).unwrap();
    let body = read(name);
    let uses = body.lines().find_map(|line| line.strip_prefix("-- uses ")).unwrap();
    let snippets: String = uses.split(", ").map(read).collect();
    format!("local of_the_release_before = true\n{snippets}{body}")
}

/// A worker of the release before, by hand.
struct Older<'a> {
    raw: Raw,
    place: &'a Place,
    claim: String,
    complete: String,
}

impl Older<'_> {
    async fn call(&mut self, text: &str, keys: &[String], args: &[&str]) -> Reply {
        let count = keys.len().to_string();
        let mut command = vec!["EVAL", text, &count];
        command.extend(keys.iter().map(String::as_str));
        command.extend(args);
        let reply = self.raw.command(&command).await;
        assert!(!reply.is_error(), "{reply}");
        reply
    }

    /// Claims up to three jobs and completes them; answers how many.
    async fn round(&mut self, request: u64) -> usize {
        let key = |part: &str| self.place.key(part);
        let keys = ["job:", "pending", "active", "schedule", "marker", "meta", "claims"].map(key);
        let text = self.claim.clone();
        let claimed = self.call(&text, &keys, &["3", "20000", "older", &request.to_string()]).await;
        let jobs = claimed.items()[4..].to_vec();
        for job in &jobs {
            let (id, token) = (job.items()[0].text(), job.items()[1].text());
            let key = |part: &str| self.place.key(part);
            let [row, logs, result] = ["", ":logs", ":result"].map(|part| key(&format!("job:{id}{part}")));
            let [active, pending, done, keys, completed, events] =
                ["active", "pending", "done", "de:", "metrics:completed", "events"].map(key);
            let keys = [row, logs, result, active, pending, done, keys, completed, events];
            let text = self.complete.clone();
            assert_eq!(self.call(&text, &keys, &[id, token, "3600000", ""]).await.text(), "OK");
        }
        jobs.len()
    }
}

#[tokio::test]
async fn two_releases_of_one_script_work_side_by_side_on_one_queue() {
    const JOBS: u64 = 600;
    let server = Server::start().await;
    let place = Place::on(&server, "deploy").await;
    place.enqueue(JOBS).await;
    let mut older = Older { raw: place.raw().await, place: &place, claim: older("claim"), complete: older("complete") };
    let worker = start(place.worker(is_done()).concurrency(2).beat(ms(100)));
    let mut raw = place.raw().await;
    let mut by_older = 0;
    for request in 0.. {
        by_older += older.round(request).await as u64;
        if request % 5 == 0 {
            // Each has to send its own text again.
            raw.line("SCRIPT FLUSH").await;
        }
        if place.queue.counts().await.unwrap().completed == JOBS {
            break;
        }
    }
    let stats = worker.stop().await;
    assert!(by_older > 10 && stats.completed > 10, "both had their share: {by_older} and {}", stats.completed);
    assert_eq!(by_older + stats.completed, JOBS, "each job once");
    assert_eq!((stats.lost, stats.stale, stats.unsettled), (0, 0, 0));
}
