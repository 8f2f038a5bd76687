//! A queue of its own on the shared server, and what changes in it.

use std::time::Duration;

use emq::{Claimed, Claimer, Client, Draft, Job, JobId, Lease, Queue};
use serde::{Deserialize, Serialize};
use support::{Dump, Raw, Reply, Server};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) n: u32,
}

impl Job for Work {
    const NAME: &'static str = "work";
}

pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) queue: Queue,
    pub(crate) raw: Raw,
    prefix: String,
    /// What is shown in place of a text that is another in each run.
    shown: Vec<(String, String)>,
    jobs: usize,
}

/// An empty queue on the server that all tests share.
pub(crate) async fn scene(label: &str) -> Scene {
    Scene::on(support::server().await, label).await
}

impl Scene {
    pub(crate) async fn on(server: &Server, label: &str) -> Self {
        let client = Client::builder(server.url()).node(1).connect().await.unwrap();
        let name = support::queue_name(label);
        Self {
            queue: client.queue(&name).unwrap(),
            client,
            raw: Raw::connect(server).await,
            prefix: format!("emq:{{{name}}}:"),
            shown: Vec::new(),
            jobs: 0,
        }
    }

    /// Enqueues a job, shown as `J1`, `J2` and so on.
    pub(crate) async fn enqueue(&mut self) -> JobId {
        let n = self.jobs as u32;
        self.enqueue_as(Draft::of(Work { n })).await
    }

    pub(crate) async fn enqueue_as(&mut self, draft: Draft<Work>) -> JobId {
        let draft = draft.queue(self.queue.name().as_str());
        let ticket = &self.client.enqueue_many([draft]).await.unwrap()[0];
        assert!(!ticket.is_duplicate());
        self.show(ticket.id());
        ticket.id()
    }

    /// Shows an id as the next `J1`, `J2` and so on.
    pub(crate) fn show(&mut self, id: JobId) {
        self.jobs += 1;
        self.shown.push((id.to_string(), format!("J{}", self.jobs)));
    }

    /// A claimer, whose name is shown as `W`.
    pub(crate) fn claimer(&mut self) -> Claimer {
        let claimer = self.queue.claimer("w").lease(LEASE);
        self.shown.push((claimer.worker().to_owned(), "W".into()));
        claimer
    }

    /// Claims the only job that waits.
    pub(crate) async fn claim(&mut self) -> Claimed {
        let mut jobs = self.claimer().claim(10).await.unwrap().jobs;
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    /// Enqueues a job and claims it.
    pub(crate) async fn claimed(&mut self) -> Lease {
        self.enqueue().await;
        self.claim().await.lease
    }

    /// Makes a dead letter.
    pub(crate) async fn dead(&mut self) -> JobId {
        let lease = self.claimed().await;
        assert!(self.queue.bury(&lease, "broken").await.unwrap().is_settled());
        lease.id()
    }

    /// Sends words to the server; `@` stands for the beginning of this queue's keys.
    pub(crate) async fn command(&mut self, words: &str) -> Reply {
        let words = words.replace('@', &self.prefix);
        self.raw.line(&words).await
    }

    /// Sends a command with any bytes in its arguments; `@` as above, in the second one.
    pub(crate) async fn bytes_command(&mut self, args: &[&[u8]]) -> Reply {
        let mut args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
        args[1] = String::from_utf8(args[1].clone()).unwrap().replace('@', &self.prefix).into_bytes();
        let reply = self.raw.command(&args).await;
        assert!(!reply.is_error(), "{reply}");
        reply
    }

    pub(crate) async fn score(&mut self, set: &str, id: JobId) -> f64 {
        self.command(&format!("ZSCORE @{set} {id}")).await.text().parse().unwrap()
    }

    pub(crate) async fn field(&mut self, id: JobId, field: &str) -> Option<String> {
        match self.command(&format!("HGET @job:{id} {field}")).await {
            Reply::Nil => None,
            reply => Some(reply.text().to_owned()),
        }
    }

    /// Makes the lease of a job run out.
    pub(crate) async fn expire(&mut self, id: JobId) {
        self.command(&format!("ZADD @active XX 1 {id}")).await;
    }

    /// Makes a scheduled job due.
    pub(crate) async fn make_due(&mut self, id: JobId) {
        self.command(&format!("ZADD @schedule XX 1 {id}")).await;
    }

    /// The server's clock in ms.
    pub(crate) async fn now(&mut self) -> f64 {
        let reply = self.command("TIME").await;
        let [seconds, micros] = reply.items() else { panic!("{reply}") };
        let micros = micros.text().parse::<f64>().unwrap();
        seconds.text().parse::<f64>().unwrap() * 1_000.0 + (micros / 1_000.0).floor()
    }

    pub(crate) async fn dump(&mut self) -> Dump {
        let pattern = format!("{}*", self.prefix);
        Dump::of(&mut self.raw, &pattern).await
    }

    /// Awaits a call, and answers with what it changed, a line each: times are `T`, this queue's keys are without their
    /// common beginning.
    pub(crate) fn changes<T>(&mut self, call: impl Future<Output = T>) -> impl Future<Output = (T, Vec<String>)> {
        // A call is large, and this would hold it several times.
        let call = Box::pin(call);
        async move {
            let before = self.dump().await;
            let answer = call.await;
            let after = self.dump().await;
            let lines = before.diff(&after);
            (answer, lines.iter().map(|line| self.mask(line)).collect())
        }
    }

    /// Awaits a call that has to change nothing.
    #[track_caller]
    pub(crate) fn unchanged<T>(&mut self, call: impl Future<Output = T>) -> impl Future<Output = T> {
        let caller = std::panic::Location::caller();
        let changes = self.changes(call);
        async move {
            let (answer, changes) = changes.await;
            assert_eq!(changes, Vec::<String>::new(), "nothing is to change at {caller}");
            answer
        }
    }

    fn mask(&self, line: &str) -> String {
        let mut line = line.replace(&self.prefix, "");
        for (text, shown) in &self.shown {
            line = line.replace(text, shown);
        }
        let mut masked = String::new();
        for part in line.split_inclusive(|c: char| !c.is_ascii_digit() && c != '.') {
            let number = part.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
            let is_time = number.split('.').next().is_some_and(|whole| whole.len() > 11);
            masked.push_str(&if is_time { part.replace(number, "T") } else { part.to_owned() });
        }
        masked
    }
}

/// Asserts that a score is a wait after the moment of a call.
#[track_caller]
pub(crate) fn assert_after(score: f64, wait: Duration, before: f64, after: f64) {
    let wait = wait.as_millis() as f64;
    assert!(before + wait <= score && score <= after + wait + 1.0, "{score} isn't {wait} ms after {before} to {after}");
}

/// The text of a script as the library sends it, with the snippets in front that its header names.
pub(crate) fn script(name: &str) -> String {
    let read =
        |name: &str| std::fs::read_to_string(format!("{}/../lua/{name}.lua", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let body = read(name);
    let uses = body.lines().find_map(|line| line.strip_prefix("-- uses ")).unwrap_or_default();
    uses.split(", ").filter(|lib| !lib.is_empty()).map(read).collect::<String>() + &body
}
