//! Each verb through a line that breaks at the worst moment, or is slow: done once, and answered as if nothing had
//! happened.

use std::time::Duration;

use emq::{
    Admission, Cancelled, Claimer, Client, Completion, Draft, Extended, JobId, JobOptions, JobState, Keep, Lease,
    Place, Queue, Removed, Revived, Schedule, Settled, Unique, Updated, layer::Delivery,
};
use futures_util::future::join_all;
use support::proxy::{Command, When};
use support::{Proxy, Raw, Server};

use crate::common::{MINUTE, Work, impatient, patient};

/// What happens to the one call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It is carried out, and the connection breaks before its reply.
    ReplyCut,
    /// It is carried out, and the reply never comes.
    ReplyLost,
    /// The connection breaks before it gets to the server.
    RequestCut,
    /// Nothing gets through, for a while.
    BlackHole,
    /// A round trip takes so many milliseconds.
    Slow(u64),
    /// The reply comes byte by byte.
    Chopped,
}

impl Fault {
    /// Whether only a timeout tells of it.
    fn is_silent(self) -> bool {
        matches!(self, Self::ReplyLost | Self::BlackHole)
    }

    /// Whether the first try of the call is carried out, and not heard of.
    fn is_unheard(self) -> bool {
        matches!(self, Self::ReplyCut | Self::ReplyLost)
    }
}

const FAULTS: [Fault; 7] = [
    Fault::ReplyCut,
    Fault::ReplyLost,
    Fault::RequestCut,
    Fault::BlackHole,
    Fault::Slow(1),
    Fault::Slow(200),
    Fault::Chopped,
];

/// A queue seen through a line that breaks, and around it.
struct Line {
    proxy: Proxy,
    client: Client,
    broken: Queue,
    sound: Queue,
    raw: Raw,
    key: String,
}

impl Line {
    async fn new(server: &Server) -> Self {
        let proxy = Proxy::start(server.port());
        let client = impatient(&proxy.url()).connect().await.unwrap();
        Self::of(server, proxy, client).await
    }

    async fn with(server: &Server, fault: Fault) -> Self {
        let proxy = Proxy::start(server.port());
        // What is merely slow is to be waited for, on a busy machine as well.
        let patience = Duration::from_millis(if fault.is_silent() { 3_000 } else { 20_000 });
        let client = impatient(&proxy.url()).command_timeout(patience).connect().await.unwrap();
        Self::of(server, proxy, client).await
    }

    async fn of(server: &Server, proxy: Proxy, client: Client) -> Self {
        let name = support::queue_name("line");
        let sound = Client::builder(server.url()).node(2).connect().await.unwrap();
        Self {
            proxy,
            broken: client.queue(&name).unwrap(),
            client,
            sound: sound.queue(&name).unwrap(),
            raw: Raw::connect(server).await,
            key: format!("emq:{{{name}}}:"),
        }
    }

    /// Makes a fault happen to the next call of this queue.
    fn arm(&self, fault: Fault) {
        let key = self.key.clone();
        let ours = move |command: &Command| {
            let first = if command.name().starts_with("EVAL") { 3 } else { 1 };
            command.arg(first).starts_with(key.as_bytes())
        };
        match fault {
            Fault::ReplyCut => self.proxy.cut_reply(ours, When::Once),
            Fault::ReplyLost => self.proxy.lose_reply(ours, When::Once),
            Fault::RequestCut => self.proxy.cut_request(ours, When::Once),
            Fault::BlackHole => self.proxy.black_hole(),
            Fault::Slow(ms) => self.proxy.delay(Duration::from_micros(ms * 1_000 / 2)),
            Fault::Chopped => self.proxy.chop(),
        }
    }

    /// Awaits a call that the fault happens to.
    async fn suffer<T>(&self, fault: Fault, call: impl Future<Output = T>) -> T {
        self.arm(fault);
        let requests = self.proxy.requests();
        let answer = if fault == Fault::BlackHole {
            let heal = async {
                // The connection that swallowed the call has been given up by then.
                tokio::time::sleep(Duration::from_millis(2_500)).await;
                self.proxy.heal();
            };
            tokio::join!(call, heal).0
        } else {
            call.await
        };
        match fault {
            Fault::ReplyCut | Fault::ReplyLost | Fault::RequestCut => {
                assert_eq!(self.proxy.cuts(), 1, "the fault has struck");
            }
            Fault::BlackHole => assert!(self.proxy.requests() > requests, "the call went into the hole"),
            Fault::Slow(_) | Fault::Chopped => assert!(self.proxy.requests() > requests, "it went through this line"),
        }
        answer
    }

    async fn claimed(&mut self) -> Lease {
        self.sound.enqueue(Work { n: 0 }).await.unwrap();
        let mut claimer = self.sound.claimer("sound");
        claimer.claim(1).await.unwrap().jobs[0].lease
    }

    async fn set(&mut self, words: &str) {
        self.raw.line(&words.replace('@', &self.key)).await;
    }
}

/// Runs a scene for each fault, each on a queue and a line of its own, and all at once.
async fn under_each_fault(scene: impl AsyncFn(&mut Line, Fault)) {
    let server = support::server().await;
    let scenes = FAULTS.map(async |fault| {
        let mut line = Line::with(server, fault).await;
        warm(&line.sound).await;
        scene(&mut line, fault).await;
    });
    join_all(scenes).await;
}

/// Calls every script, so that each is loaded: a fault is to strike the call that is carried out, not the one that
/// learns that the script isn't there.
async fn warm(queue: &Queue) {
    let none = Lease::new("JOB0JZGkP9AMvv".parse().unwrap(), 1);
    let id = queue.enqueue(Work { n: 0 }).await.unwrap().id();
    queue.remove(id).await.unwrap();
    queue.claimer("warm").claim(1).await.unwrap();
    queue.complete(&none, Completion::empty()).await.unwrap();
    queue.retry(&none, MINUTE, "").await.unwrap();
    queue.bury(&none, "").await.unwrap();
    queue.snooze(&none, MINUTE).await.unwrap();
    queue.release(&none).await.unwrap();
    queue.extend(&[none], MINUTE).await.unwrap();
    queue.promote().await.unwrap();
    queue.reap(None).await.unwrap();
    queue.trim(Keep::default()).await.unwrap();
    queue.revive(none.id()).await.unwrap();
    queue.counts().await.unwrap();
    queue.state(none.id()).await.unwrap();
    queue.get(none.id()).await.unwrap();
    queue.list(Place::Dead, 0, 1).await.unwrap();
    queue.cancel(none.id()).await.unwrap();
    queue.cancel_held(&none).await.unwrap();
    queue.run_now(none.id()).await.unwrap();
    queue.purge(Place::Dead).all().await.unwrap();
    let recurring = queue.recurring();
    recurring.upsert("warm", hourly(), Work { n: 0 }).await.unwrap();
    recurring.pause("warm").await.unwrap();
    recurring.resume("warm").await.unwrap();
    let id = recurring.run_now("warm").await.unwrap().unwrap();
    queue.remove(id).await.unwrap();
    recurring.remove("warm").await.unwrap();
}

fn hourly() -> Schedule {
    Schedule::every(Duration::from_secs(3_600))
}

/// What a settle answers: its own earlier try isn't taken for somebody else's.
fn settled(fault: Fault, answer: Settled) {
    assert_eq!(answer, if fault.is_unheard() { Settled::Repeated } else { Settled::Accepted }, "{fault:?}");
}

#[tokio::test]
async fn enqueue() {
    under_each_fault(async |line, fault| {
        let call = line.broken.enqueue(Work { n: 1 }).into_future();
        let ticket = line.suffer(fault, call).await.unwrap();
        assert!(!ticket.is_duplicate(), "{fault:?}: its own job is no duplicate");
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn enqueue_with_a_key() {
    under_each_fault(async |line, fault| {
        let call = line.broken.enqueue(Work { n: 1 }).unique("k").into_future();
        assert!(!line.suffer(fault, call).await.unwrap().is_duplicate(), "{fault:?}");
        assert!(line.sound.enqueue(Work { n: 1 }).unique("k").await.unwrap().is_duplicate(), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn enqueue_with_an_id_of_the_users() {
    under_each_fault(async |line, fault| {
        let id: JobId = "JOB0JZGkP9AMvv".parse().unwrap();
        let call = line.broken.enqueue(Work { n: 1 }).id(id).into_future();
        assert_eq!(line.suffer(fault, call).await.unwrap().id(), id, "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn enqueue_many() {
    under_each_fault(async |line, fault| {
        let name = line.broken.name().to_string();
        let call = line.client.enqueue_many((0..100).map(|n| Draft::of(Work { n }).queue(&name))).into_future();
        let tickets = line.suffer(fault, call).await.unwrap();
        assert!(tickets.iter().all(|ticket| !ticket.is_duplicate()), "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().pending, 100, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn claim() {
    under_each_fault(async |line, fault| {
        for n in 0..10 {
            line.sound.enqueue(Work { n }).await.unwrap();
        }
        let mut claimer = line.broken.claimer("w");
        let batch = line.suffer(fault, claimer.claim(4)).await.unwrap();
        assert_eq!((batch.jobs.len(), batch.more), (4, true), "{fault:?}");
        assert!(batch.jobs.iter().all(|job| job.lease.token() == 1), "{fault:?}: none was claimed twice");
        let counts = line.sound.counts().await.unwrap();
        assert_eq!((counts.active, counts.pending), (4, 6), "{fault:?}: none is without an owner");
        assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 6, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn leave() {
    under_each_fault(async |line, fault| {
        line.sound.enqueue(Work { n: 0 }).await.unwrap();
        let mut claimer = line.broken.claimer("w");
        claimer.claim(1).await.unwrap();
        // Said once: who isn't heard is forgotten after a while.
        let left = line.suffer(fault, claimer.leave()).await;
        let is_known = line.raw.command(&["HLEN", &format!("{}claims", line.key)]).await.int() == 1;
        match fault {
            Fault::Slow(_) | Fault::Chopped => assert!(left.is_ok() && !is_known, "{fault:?}: {left:?}"),
            _ => {
                assert!(left.unwrap_err().is_transient(), "{fault:?}");
                assert_eq!(is_known, !fault.is_unheard(), "{fault:?}");
            }
        }
        assert_eq!(line.sound.counts().await.unwrap().active, 1, "{fault:?}: what it had in hand stays so");
    })
    .await;
}

#[tokio::test]
async fn complete() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        let answer = line.suffer(fault, line.broken.complete(&lease, Completion::of("x").unwrap())).await.unwrap();
        settled(fault, answer);
        assert_eq!(line.sound.counts().await.unwrap().completed, 1, "{fault:?}");
        assert!(line.sound.get(lease.id()).await.unwrap().unwrap().result.is_some());
    })
    .await;
}

#[tokio::test]
async fn retry() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        settled(fault, line.suffer(fault, line.broken.retry(&lease, MINUTE, "no")).await.unwrap());
        let job = line.sound.get(lease.id()).await.unwrap().unwrap();
        assert_eq!((job.failures, line.sound.counts().await.unwrap().scheduled), (1, 1), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn bury() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        settled(fault, line.suffer(fault, line.broken.bury(&lease, "no")).await.unwrap());
        let counts = line.sound.counts().await.unwrap();
        assert_eq!((counts.failed, counts.dead), (1, 1), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn snooze() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        settled(fault, line.suffer(fault, line.broken.snooze(&lease, MINUTE)).await.unwrap());
        assert_eq!(line.sound.counts().await.unwrap().scheduled, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn release() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        settled(fault, line.suffer(fault, line.broken.release(&lease)).await.unwrap());
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn extend() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        let answer = line.suffer(fault, line.broken.extend(&[lease], MINUTE)).await.unwrap();
        assert_eq!(answer, [Extended::Renewed], "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn promote_and_reap() {
    under_each_fault(async |line, fault| {
        let snoozed = line.claimed().await;
        line.sound.snooze(&snoozed, MINUTE).await.unwrap();
        line.set(&format!("ZADD @schedule 1 {}", snoozed.id())).await;
        line.suffer(fault, line.broken.promote()).await.unwrap();
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        line.set(&format!("ZADD @active 1 {}", lease.id())).await;
        line.suffer(fault, line.broken.reap(Some(3))).await.unwrap();
        assert_eq!(line.sound.get(lease.id()).await.unwrap().unwrap().stalled, 1, "{fault:?}: counted once");
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn revive_and_remove() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        line.sound.bury(&lease, "no").await.unwrap();
        assert_eq!(line.suffer(fault, line.broken.revive(lease.id())).await.unwrap(), Revived::Revived, "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        line.sound.bury(&lease, "no").await.unwrap();
        assert_eq!(line.suffer(fault, line.broken.remove(lease.id())).await.unwrap(), Removed::Removed, "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().dead, 0, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn cancel_and_cancel_held() {
    under_each_fault(async |line, fault| {
        let id = line.sound.enqueue(Work { n: 0 }).await.unwrap().id();
        assert_eq!(line.suffer(fault, line.broken.cancel(id)).await.unwrap(), Cancelled::AtOnce, "{fault:?}");
        assert_eq!(line.sound.state(id).await.unwrap(), Some(JobState::Cancelled), "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        assert_eq!(line.suffer(fault, line.broken.cancel(lease.id())).await.unwrap(), Cancelled::Asked, "{fault:?}");
        assert_eq!(line.sound.extend(&[lease], MINUTE).await.unwrap(), [Extended::Cancelled], "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        settled(fault, line.suffer(fault, line.broken.cancel_held(&lease)).await.unwrap());
        assert_eq!(line.sound.state(lease.id()).await.unwrap(), Some(JobState::Cancelled), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn a_settling_that_meets_a_cancellation() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        line.sound.cancel(lease.id()).await.unwrap();
        let answer = line.suffer(fault, line.broken.retry(&lease, MINUTE, "no")).await.unwrap();
        assert_eq!(answer, Settled::Cancelled, "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().unfinished(), 0, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn update() {
    under_each_fault(async |line, fault| {
        let id = line.sound.enqueue(Work { n: 0 }).delay(MINUTE).await.unwrap().id();
        let call = line.broken.update(id).payload(&Work { n: 7 }).now().into_future();
        assert_eq!(line.suffer(fault, call).await.unwrap(), Updated::Updated, "{fault:?}");
        let job = line.sound.claimer("sound").claim(1).await.unwrap().jobs.remove(0);
        assert_eq!(job.decode::<Work>().unwrap().n, 7, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn progress_and_log() {
    under_each_fault(async |line, fault| {
        line.sound.enqueue(Work { n: 0 }).await.unwrap();
        let job = line.sound.claimer("sound").claim(1).await.unwrap().jobs.remove(0);
        let client = impatient(&line.proxy.url()).connect().await.unwrap();
        let delivery = Delivery::new(line.broken.name(), job, JobOptions::new()).reporting_to(&client);
        // The scripts are known to the server by the first, and a line is kept once by the second.
        delivery.context().progress(&1).await.unwrap();
        delivery.context().log("one").await.unwrap();
        line.suffer(fault, delivery.context().log("two")).await.unwrap();
        assert_eq!(line.sound.logs(delivery.id()).await.unwrap(), ["one", "two"], "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn purge() {
    under_each_fault(async |line, fault| {
        let lease = line.claimed().await;
        line.sound.bury(&lease, "no").await.unwrap();
        let mut purge = line.broken.purge(Place::Dead);
        line.suffer(fault, purge.next()).await.unwrap();
        while purge.next().await.unwrap().is_some() {}
        assert_eq!(line.sound.state(lease.id()).await.unwrap(), Some(JobState::Removed), "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn trim() {
    under_each_fault(async |line, fault| {
        for _ in 0..2 {
            let lease = line.claimed().await;
            line.sound.bury(&lease, "no").await.unwrap();
        }
        let trimmed = line.suffer(fault, line.broken.trim(Keep { count: 1, ..Keep::default() })).await.unwrap();
        assert_eq!(trimmed.dead, u64::from(!fault.is_unheard()), "{fault:?}: an earlier try may have done it");
        assert_eq!(line.sound.counts().await.unwrap().dead, 1, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn counts_state_get_and_list() {
    let counts = under_each_fault(async |line, fault| {
        line.sound.enqueue(Work { n: 1 }).await.unwrap();
        assert_eq!(line.suffer(fault, line.broken.counts()).await.unwrap().pending, 1, "{fault:?}");
    });
    let state = under_each_fault(async |line, fault| {
        let id = line.sound.enqueue(Work { n: 1 }).await.unwrap().id();
        let state = line.suffer(fault, line.broken.state(id)).await.unwrap();
        assert_eq!(state, Some(JobState::Pending), "{fault:?}");
    });
    let get = under_each_fault(async |line, fault| {
        let id = line.sound.enqueue(Work { n: 1 }).await.unwrap().id();
        let job = line.suffer(fault, line.broken.get(id)).await.unwrap().unwrap();
        assert_eq!(&*job.payload, b"{\"n\":1}", "{fault:?}");
    });
    let list = under_each_fault(async |line, fault| {
        let id = line.sound.enqueue(Work { n: 1 }).await.unwrap().id();
        let listed = line.suffer(fault, line.broken.list(Place::Pending, 0, 10)).await.unwrap();
        assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), [id], "{fault:?}");
    });
    tokio::join!(counts, state, get, list);
}

#[tokio::test]
async fn a_claim_that_was_given_up_finds_its_jobs_at_the_next_try() {
    let server = support::server().await;
    let line = Line::new(server).await;
    warm(&line.sound).await;
    for n in 0..3 {
        line.sound.enqueue(Work { n }).await.unwrap();
    }
    let client = patient(&line.proxy.url()).retry_for(Duration::ZERO).connect().await.unwrap();
    let mut claimer: Claimer = client.queue(line.broken.name().as_str()).unwrap().claimer("w");
    line.arm(Fault::ReplyCut);
    assert!(claimer.claim(2).await.is_err());
    assert_eq!(line.sound.counts().await.unwrap().active, 2, "it was carried out");
    let mut jobs = Vec::new();
    crate::common::eventually("the claim is answered", async || {
        claimer.claim(1).await.is_ok_and(|batch| {
            jobs = batch.jobs;
            true
        })
    })
    .await;
    assert_eq!(jobs.len(), 2, "its own jobs, and no others");
    assert!(jobs.iter().all(|job| job.lease.token() == 1));
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn a_call_that_was_dropped_leaves_nothing_undone() {
    let server = support::server().await;
    let line = Line::new(server).await;
    for n in 0..50 {
        line.sound.enqueue(Work { n }).await.unwrap();
    }
    line.proxy.delay(Duration::from_millis(20));
    let mut claimer = line.broken.claimer("w");
    let mut claimed = 0;
    let mut dropped = 0;
    while claimed < 50 {
        let patience = Duration::from_millis(if dropped % 2 == 0 { 10 } else { 5_000 });
        match tokio::time::timeout(patience, claimer.claim(7)).await {
            Ok(batch) => claimed += batch.unwrap().jobs.len(),
            Err(_) => dropped += 1,
        }
        if dropped % 2 == 1 {
            claimed += claimer.claim(7).await.unwrap().jobs.len();
            dropped += 1;
        }
    }
    assert_eq!((claimed, line.sound.counts().await.unwrap().active), (50, 50));
}

#[tokio::test]
async fn register_a_recurring_job() {
    under_each_fault(async |line, fault| {
        let call = line.broken.recurring().upsert("report", hourly(), Work { n: 1 }).into_future();
        line.suffer(fault, call).await.unwrap();
        let registered = line.sound.recurring().get("report").await.unwrap().unwrap();
        let again = line.sound.recurring().upsert("report", hourly(), Work { n: 1 }).await.unwrap();
        assert_eq!(again, emq::Upserted::Unchanged, "{fault:?}");
        assert_eq!(line.sound.recurring().get("report").await.unwrap().unwrap(), registered, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn run_a_recurring_job_now() {
    under_each_fault(async |line, fault| {
        line.sound.recurring().upsert("report", hourly(), Work { n: 1 }).await.unwrap();
        let recurring = line.broken.recurring();
        let id = line.suffer(fault, recurring.run_now("report")).await.unwrap().unwrap();
        assert_eq!(line.sound.counts().await.unwrap().pending, 1, "{fault:?}: it was enqueued once");
        assert!(line.sound.get(id).await.unwrap().is_some(), "{fault:?}: under the id that was told");
    })
    .await;
}

#[tokio::test]
async fn pause_resume_and_remove_a_recurring_job() {
    under_each_fault(async |line, fault| {
        line.sound.recurring().upsert("report", hourly(), Work { n: 1 }).await.unwrap();
        let recurring = line.broken.recurring();
        assert!(line.suffer(fault, recurring.pause("report")).await.unwrap(), "{fault:?}");
        assert!(line.sound.recurring().get("report").await.unwrap().unwrap().paused, "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        line.sound.recurring().upsert("report", hourly(), Work { n: 1 }).await.unwrap();
        line.sound.recurring().pause("report").await.unwrap();
        let recurring = line.broken.recurring();
        assert!(line.suffer(fault, recurring.resume("report")).await.unwrap(), "{fault:?}");
        assert!(!line.sound.recurring().get("report").await.unwrap().unwrap().paused, "{fault:?}");
    })
    .await;
    under_each_fault(async |line, fault| {
        line.sound.recurring().upsert("report", hourly(), Work { n: 1 }).await.unwrap();
        let recurring = line.broken.recurring();
        assert!(line.suffer(fault, recurring.remove("report")).await.unwrap(), "{fault:?}");
        assert_eq!(line.sound.recurring().get("report").await.unwrap(), None, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn an_enqueue_that_is_merged_into_a_waiting_job_is_so_once_whatever_comes_between() {
    under_each_fault(async |line, fault| {
        let unique = || Unique::key("k").debounce(MINUTE * 9);
        let first = line.sound.enqueue(Work { n: 0 }).unique(unique()).delay(MINUTE).await.unwrap().id();
        let call = line.broken.enqueue(Work { n: 1 }).unique(unique()).delay(MINUTE * 2).into_future();
        let ticket = line.suffer(fault, call).await.unwrap();
        assert_eq!((ticket.admission(), ticket.id()), (Admission::Replaced(first), first), "{fault:?}");
        assert_eq!(line.sound.counts().await.unwrap().scheduled, 1, "{fault:?}");
        assert_eq!(line.sound.get(first).await.unwrap().unwrap().payload, r#"{"n":1}"#, "{fault:?}");
    })
    .await;
}

#[tokio::test]
async fn an_enqueue_that_is_parked_is_so_once_and_told_behind_whom() {
    under_each_fault(async |line, fault| {
        let unique = || Unique::key("k").then_once();
        let first = line.sound.enqueue(Work { n: 0 }).unique(unique()).await.unwrap().id();
        let lease = line.sound.claimer("sound").claim(1).await.unwrap().jobs[0].lease;
        let call = line.broken.enqueue(Work { n: 1 }).unique(unique()).into_future();
        let ticket = line.suffer(fault, call).await.unwrap();
        assert_eq!(ticket.admission(), Admission::Parked(first), "{fault:?}");
        line.sound.complete(&lease, Completion::empty()).await.unwrap();
        let jobs = line.sound.claimer("sound").claim(9).await.unwrap().jobs;
        assert_eq!(jobs.iter().map(|job| job.lease.id()).collect::<Vec<_>>(), [ticket.id()], "{fault:?}");
    })
    .await;
}
