//! Every way into "can run now" wakes an idle worker at once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use emq::{
    Admission, Completion, JobId, Lane, Lease, Overlap, Rate, Reassigned, Recurrence, Revived, Schedule, Ticket,
    Unique, Updated,
};
use support::Raw;

use crate::errand::{Errand, Place, Told, begins_at_once, ms, start, telling, tells};

const HOUR: Duration = Duration::from_secs(3_600);

/// How far ahead the slot of a recurring job is when it is made: longer than a busy machine needs to learn of it, for a slot
/// that has come by then is found by the beat.
const AHEAD: Duration = Duration::from_millis(300);

/// What lets a job run. The beat is too seldom to help with any of them, except where it is the one that acts.
const WAYS: [&str; 24] = [
    "enqueue",
    "enqueue into a lane",
    "promote",
    "retry",
    "reap",
    "release",
    "revive",
    "resume",
    "raised limit",
    "raised rate",
    "freed slot",
    "lane resume",
    "raised limit of a lane",
    "raised rate of a lane",
    "freed slot of a lane",
    "reassign",
    "reschedule",
    "run now",
    "update",
    "unique successor",
    "unique successor of a dead letter",
    "recurring slot",
    "recurring slot that waited",
    "recurring job run now",
];

#[tokio::test]
async fn what_lets_a_job_run_starts_it_within_50_ms_on_an_idle_worker() {
    let place = Place::shared("wakes").await;
    let (tell, told) = telling();
    let worker = start(place.worker(tells(&tell)).beat(ms(60_000)));
    let lane = place.queue.lane("a").unwrap();
    let raw = place.raw().await;
    let mut table = Table { place: &place, lane, raw, told };
    for way in WAYS {
        let mut took = Vec::new();
        for n in 0..9 {
            let waiting = table.keep_from_running(way, n).await;
            // Until the worker sleeps again.
            tokio::time::sleep(ms(30)).await;
            assert!(table.told.rest().is_empty(), "{way}");
            let before = Instant::now();
            table.let_run(way, n, &waiting).await;
            assert_eq!(table.told.next().await, n, "{way}");
            let since = if way == "recurring slot" { before + AHEAD } else { before };
            took.push(since.elapsed());
            place.until(async || place.queue.counts().await.is_ok_and(|counts| counts.unfinished() == 0)).await;
            table.tidy_up().await;
        }
        begins_at_once(way, took).await;
    }
    worker.stop().await;
}

struct Table<'a> {
    place: &'a Place,
    lane: Lane,
    raw: Raw,
    told: Told<u64>,
}

/// The job that is to run, and the one that keeps it from running; whatever is needed of them.
#[derive(Default)]
struct Waiting {
    id: Option<JobId>,
    ticket: Option<Ticket<Errand>>,
    in_front: Option<Lease>,
}

impl Waiting {
    fn id(&self) -> JobId {
        self.id.expect("there is a job")
    }

    fn ticket(&self) -> &Ticket<Errand> {
        self.ticket.as_ref().expect("there is a ticket")
    }

    fn in_front(&self) -> &Lease {
        self.in_front.as_ref().expect("there is a job in front")
    }
}

impl Table<'_> {
    async fn keep_from_running(&mut self, way: &str, n: u64) -> Waiting {
        let (place, lane) = (self.place, self.lane.clone());
        let queue = &place.queue;
        let successor = || Unique::key("k").then_once();
        let mut waiting = Waiting::default();
        match way {
            "enqueue" | "enqueue into a lane" | "recurring slot" => return waiting,
            "recurring job run now" => {
                queue.recurring().upsert("tick", Schedule::every(HOUR), Errand { n }).await.unwrap();
                return waiting;
            }
            "recurring slot that waited" => {
                waiting.in_front = Some(self.slot_that_waits(n).await);
                return waiting;
            }
            "retry" | "reap" | "release" | "revive" => {
                let id = self.held_elsewhere(place.errand(n).group("a")).await.id();
                if way == "revive" {
                    self.raw.command(&["ZREM", &place.key("active"), id.as_str()]).await;
                    self.raw.command(&["ZADD", &place.key("dead"), "99999999999999", id.as_str()]).await;
                }
                waiting.id = Some(id);
                return waiting;
            }
            "promote" | "reschedule" | "run now" | "update" => {
                let ticket = place.errand(n).delay(HOUR).await.unwrap();
                waiting.id = Some(ticket.id());
                waiting.ticket = Some(ticket);
                return waiting;
            }
            "unique successor" | "unique successor of a dead letter" => {
                let holder = place.errand(1_000).group("a").unique(successor());
                waiting.in_front = Some(self.held_elsewhere(holder).await);
                let ticket = place.errand(n).unique(successor()).await.unwrap();
                assert!(matches!(ticket.admission(), Admission::Parked(_)), "{:?}", ticket.admission());
                return waiting;
            }
            "freed slot" | "freed slot of a lane" => {
                waiting.in_front = Some(self.held_elsewhere(place.errand(1_000).group("a")).await);
                if way == "freed slot" {
                    queue.set_concurrency(1).await.unwrap();
                } else {
                    self.raw.command(&["HINCRBY", &place.key("gactive"), "a", "1"]).await;
                    lane.set_concurrency(1).await.unwrap();
                }
            }
            "resume" => queue.pause().await.unwrap(),
            "raised limit" => queue.set_concurrency(0).await.unwrap(),
            "raised limit of a lane" => lane.set_concurrency(0).await.unwrap(),
            "raised rate" | "raised rate of a lane" => {
                // It is used up.
                let rate = Rate::per(1, HOUR);
                if way == "raised rate" { queue.set_rate(rate).await } else { lane.set_rate(rate).await }.unwrap();
                place.errand(1_000).group("a").await.unwrap();
                assert_eq!(self.told.next().await, 1_000);
            }
            "lane resume" | "reassign" => lane.pause().await.unwrap(),
            _ => panic!("nothing is said of {way}"),
        }
        waiting.id = Some(place.errand(n).group("a").await.unwrap().id());
        waiting
    }

    async fn let_run(&mut self, way: &str, n: u64, waiting: &Waiting) {
        let (place, lane) = (self.place, &self.lane);
        let queue = &place.queue;
        let complete = async || queue.complete(waiting.in_front(), Completion::empty()).await.unwrap();
        match way {
            "enqueue" => drop(place.errand(n).await.unwrap()),
            "enqueue into a lane" => drop(place.errand(n).group("a").await.unwrap()),
            "promote" => {
                self.raw.command(&["ZADD", &place.key("schedule"), "1", waiting.id().as_str()]).await;
                assert_eq!(queue.promote().await.unwrap().count, 1);
            }
            "retry" => assert!(queue.retry(&Lease::new(waiting.id(), 1), ms(1), "no").await.unwrap().is_settled()),
            "reap" => {
                self.raw.command(&["ZADD", &place.key("active"), "1", waiting.id().as_str()]).await;
                assert_eq!(queue.reap(None).await.unwrap().recovered, [waiting.id()]);
            }
            "release" => assert!(queue.release(&Lease::new(waiting.id(), 1)).await.unwrap().is_settled()),
            "revive" => assert_eq!(queue.revive(waiting.id()).await.unwrap(), Revived::Revived),
            "resume" => queue.resume().await.unwrap(),
            "raised limit" => queue.set_concurrency(1).await.unwrap(),
            "raised rate" => queue.set_rate(Rate::per(1_000, HOUR).burst(10)).await.unwrap(),
            "lane resume" => lane.resume().await.unwrap(),
            "raised limit of a lane" => lane.set_concurrency(1).await.unwrap(),
            "raised rate of a lane" => lane.set_rate(Rate::per(1_000, HOUR).burst(10)).await.unwrap(),
            "reassign" => assert_eq!(queue.reassign(waiting.id(), None).await.unwrap(), Reassigned::Reassigned),
            "reschedule" => assert_eq!(waiting.ticket().reschedule(ms(1)).await.unwrap(), Updated::Updated),
            "run now" => assert_eq!(waiting.ticket().run_now().await.unwrap(), Updated::Updated),
            "update" => assert_eq!(queue.update(waiting.id()).now().await.unwrap(), Updated::Updated),
            "freed slot" | "freed slot of a lane" | "unique successor" | "recurring slot that waited" => {
                assert!(complete().await.is_settled());
            }
            "unique successor of a dead letter" => {
                assert!(queue.bury(waiting.in_front(), "no").await.unwrap().is_settled());
            }
            "recurring slot" => {
                let schedule = Schedule::every(HOUR).starting_at(SystemTime::now() + AHEAD);
                queue.recurring().upsert("tick", schedule, Errand { n }).await.unwrap();
            }
            "recurring job run now" => drop(queue.recurring().run_now("tick").await.unwrap()),
            _ => panic!("nothing is done about {way}"),
        }
    }

    /// Enqueues a job into lane `a`, and makes it one that somebody else holds. It is moved by hand: while the lane is
    /// paused the job isn't the worker's, and nobody is woken by it.
    async fn held_elsewhere(&mut self, errand: emq::Enqueue<Errand>) -> Lease {
        self.lane.pause().await.unwrap();
        let id = errand.await.unwrap().id();
        self.hand_over(id).await;
        Lease::new(id, 1)
    }

    async fn hand_over(&mut self, id: JobId) {
        let (place, id) = (self.place, id.as_str());
        self.raw.command(&["ZREM", &place.key("g:a:pending"), id]).await;
        self.raw.command(&["DEL", &place.key("lanes")]).await;
        self.raw.command(&["HDEL", &place.key("meta"), "in_lanes"]).await;
        self.raw.command(&["ZADD", &place.key("active"), "99999999999999", id]).await;
        self.raw.command(&["HSET", &place.key(format!("job:{id}")), "attempts", "1", "state", "active"]).await;
        self.lane.resume().await.unwrap();
    }

    /// A recurring job whose last job somebody else holds, and whose next slot has come and waits for that.
    async fn slot_that_waits(&mut self, n: u64) -> Lease {
        let place = self.place;
        let recurring = place.queue.recurring();
        self.lane.pause().await.unwrap();
        let schedule = Schedule::every(HOUR).starting_at(SystemTime::now() + AHEAD);
        let recurrence = Recurrence::new(schedule).overlap(Overlap::Wait);
        recurring.upsert("tick", recurrence, Errand { n }).group("a").await.unwrap();
        place.until(async || self.lane.list(0, 1).await.is_ok_and(|jobs| jobs.len() == 1)).await;
        let id = self.lane.list(0, 1).await.unwrap()[0].id;
        self.hand_over(id).await;
        let next = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD).as_millis().to_string();
        self.raw.command(&["HSET", &place.key("repeat:tick"), "next", &next]).await;
        self.raw.command(&["ZADD", &place.key("repeat"), &next, "tick"]).await;
        self.raw.command(&["ZADD", &place.key("marker"), "0", "0"]).await;
        let key = place.key("repeat:tick");
        place.until(async || place.raw().await.command(&["HEXISTS", &key, "held"]).await.int() == 1).await;
        Lease::new(id, 1)
    }

    async fn tidy_up(&mut self) {
        let (queue, lane) = (&self.place.queue, &self.lane);
        queue.set_concurrency(None).await.unwrap();
        queue.set_rate(None).await.unwrap();
        lane.set_concurrency(None).await.unwrap();
        lane.set_rate(None).await.unwrap();
        queue.recurring().remove("tick").await.unwrap();
        let waits = [self.place.key("gactive"), self.place.key("held")];
        self.raw.command(&["DEL", &waits[0], &waits[1]]).await;
        lane.resume().await.unwrap();
        queue.purge(emq::Place::Dead).all().await.unwrap();
        assert!(self.told.rest().is_empty());
    }
}
