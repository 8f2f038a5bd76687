//! A rolling deploy: workers of an older release run the texts that they have beside those of this one.

use std::{fs, path::Path};

use support::{Raw, Reply, Server};

use crate::errand::{Place, is_done, ms, start};

/// A script as a release before this one may have had it.
struct Text {
    text: String,
    /// Their patterns, from the header.
    keys: Vec<String>,
}

impl Text {
    /// With its snippets in front.
    fn of(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lua");
        let read = |name: &str| fs::read_to_string(folder.join(format!("{name}.lua"))).unwrap();
        let body = read(name);
        let uses = body.lines().find_map(|line| line.strip_prefix("-- uses ")).unwrap();
        let snippets: String = uses.split(", ").map(read).collect();
        let key = |line: &str| line.strip_prefix("-- KEYS[")?.split_whitespace().nth(2).map(str::to_owned);
        let keys = body.lines().filter_map(key).collect();
        Self { text: format!("local of_the_release_before = true\n{snippets}{body}"), keys }
    }

    /// Its keys. What stands in angle brackets is appended by the script.
    fn keys<'a>(&'a self, queue: &'a str) -> impl Iterator<Item = String> + 'a {
        self.keys.iter().map(move |pattern| {
            let key = pattern.replace("{q}", &format!("{{{queue}}}"));
            key.split('<').next().unwrap_or_default().to_owned()
        })
    }
}

/// A worker of the release before, by hand.
struct Older {
    raw: Raw,
    queue: String,
    claim: Text,
    complete: Text,
}

impl Older {
    async fn call(raw: &mut Raw, text: &Text, queue: &str, args: &[&str]) -> Reply {
        let mut command = vec!["EVAL".to_owned(), text.text.clone(), text.keys.len().to_string()];
        command.extend(text.keys(queue));
        command.extend(args.iter().map(ToString::to_string));
        let reply = raw.command(&command).await;
        assert!(!reply.is_error(), "{reply}");
        reply
    }

    /// Claims up to three jobs and completes them; answers how many.
    async fn round(&mut self, request: u64) -> u64 {
        let Self { raw, queue, claim, complete } = self;
        let claimed = Self::call(raw, claim, queue, &["3", "20000", "older", &request.to_string()]).await;
        let mut jobs = Vec::new();
        for job in claimed.items()[5].items().chunks(4) {
            jobs.extend([job[1].text(), "3600000", "", "", "1", job[0].text()]);
        }
        if jobs.is_empty() {
            return 0;
        }
        assert_eq!(Self::call(raw, complete, queue, &jobs).await.text(), "OK");
        jobs.len() as u64 / 6
    }
}

#[tokio::test]
async fn two_releases_of_one_script_work_side_by_side_on_one_queue() {
    const JOBS: u64 = 600;
    let server = Server::start().await;
    let place = Place::on(&server, "deploy").await;
    place.enqueue(JOBS).await;
    let mut older = Older {
        raw: place.raw().await,
        queue: place.name().to_owned(),
        claim: Text::of("claim"),
        complete: Text::of("complete"),
    };
    let worker = start(place.worker(is_done()).concurrency(2).beat(ms(100)));
    let mut raw = place.raw().await;
    let mut by_older = 0;
    for request in 0.. {
        by_older += older.round(request).await;
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
