//! Each key and each field in turn holds what doesn't belong there: a typed error that has written nothing, or no error
//! at all; and when it is gone, or out of the way, the queue goes on.

use emq::{CallError, Completion, Draft, EnqueueError, JobId, Keep, Lease, Place, Settled};

use crate::scene::{LEASE, MINUTE, Scene, Work, scene};

/// Keys of two types, of which at least one is another than that of any key, as words of commands with `KEY` for its name.
const TYPES: [(&str, &str); 2] = [("set", "SADD KEY text"), ("hash", "HSET KEY field text")];

/// What somebody may have written into a field, or a value.
const GARBAGE: [&[u8]; 9] =
    [b"", b"\0", b"\xff\xfe", b"garbage", b"-1", b"1e300", b"|:|", b"9007199254740993", b"\r\n-ERR x\r\n"];

/// Takes a new job once round, and asserts that the others of the queue are neither lost nor in its way.
async fn goes_on(scene: &mut Scene, label: &str) {
    let id = scene.enqueue_as(Draft::of(Work { n: 7 }).priority(i32::MIN)).await;
    let mut claimer = scene.claimer();
    let queue = scene.queue.clone();
    for _ in 0..10 {
        let batch = claimer.claim(1_000).await.unwrap_or_else(|error| panic!("{label}: {error}"));
        let mut is_done = false;
        for job in batch.jobs {
            let settled = queue.complete(&job.lease, Completion::empty()).await;
            if job.lease.id() == id {
                assert_eq!(settled.unwrap(), Settled::Accepted, "{label}");
                is_done = true;
            }
        }
        if is_done {
            return;
        }
    }
    panic!("{label}: a plain job doesn't get through");
}

/// Calls every verb that touches a job, and asserts that a refused one has written nothing, if any may be refused.
async fn every_verb(scene: &mut Scene, jobs: &Jobs, may_refuse: bool, label: &str) {
    let queue = scene.queue.clone();
    let Jobs { held, dead, waiting } = jobs;
    macro_rules! calls {
        ($($name:literal $call:expr),+ $(,)?) => {$(
            let before = if may_refuse { Some(scene.dump().await) } else { None };
            if let Err(error) = Box::pin($call).await {
                assert!(may_refuse, "{} with {label}: {error}", $name);
                let error = CallError::from(Refusal(error.into()));
                assert!(matches!(error, CallError::Refused { .. }), "{} with {label}: {error:?}", $name);
                let changes = before.unwrap().diff(&scene.dump().await);
                assert!(changes.is_empty(), "{} with {label}: {changes:?}", $name);
            }
        )+};
    }
    let mut claimer = scene.claimer();
    calls!(
        "enqueue" queue.enqueue(Work { n: 1 }).unique("k").into_future(),
        "admit" queue.enqueue(Work { n: 1 }).into_future(),
        "enqueue later" queue.enqueue(Work { n: 1 }).delay(MINUTE).into_future(),
        "promote" queue.promote(),
        "reap" queue.reap(Some(1)),
        "claim" claimer.claim(10),
        "extend" queue.extend(held, LEASE),
        "complete" queue.complete(&held[0], Completion::of("x").unwrap()),
        "retry" queue.retry(&held[1], MINUTE, "no"),
        "snooze" queue.snooze(&held[2], MINUTE),
        "release" queue.release(&held[3]),
        "bury" queue.bury(&held[4], "no"),
        "revive" queue.revive(*dead),
        "remove" queue.remove(*waiting),
        "trim" queue.trim(Keep { count: 0, ..Keep::default() }),
        "counts" queue.counts(),
        "state" queue.state(*dead),
        "get" queue.get(*waiting),
        "list" queue.list(Place::Dead, 0, 10),
    );
}

/// The error of any call, since an enqueue has its own.
struct Refusal(Box<dyn std::error::Error>);

impl From<Refusal> for CallError {
    fn from(Refusal(error): Refusal) -> Self {
        let error = match error.downcast::<EnqueueError>() {
            Ok(error) => match *error {
                EnqueueError::Call { source, .. } => return source,
                other => panic!("{other}"),
            },
            Err(error) => error,
        };
        *error.downcast::<Self>().expect("an error of a call")
    }
}

/// Jobs in each place.
struct Jobs {
    held: [Lease; 5],
    dead: JobId,
    waiting: JobId,
}

async fn jobs(scene: &mut Scene) -> Jobs {
    let dead = scene.dead().await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(scene.claimed().await);
    }
    let stale = scene.claimed().await;
    scene.expire(stale.id()).await;
    let due = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    scene.make_due(due).await;
    scene.command("ZADD @done 1 JOB0JZGkP9AMvv").await;
    let waiting = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
    Jobs { held: held.try_into().unwrap(), dead, waiting }
}

#[tokio::test]
async fn a_key_of_any_other_type_is_an_error_or_none_and_the_queue_goes_on_when_it_is_gone() {
    let keys = [
        "pending",
        "active",
        "schedule",
        "dead",
        "done",
        "marker",
        "meta",
        "claims",
        "metrics:completed",
        "metrics:failed",
        "de:k",
        "events",
        "job:WAITING",
        "job:WAITING:logs",
        "job:WAITING:result",
        "job:HELD",
        "job:DEAD",
        "parked",
        "next:k",
        "ring",
        "paused",
        "glimit",
        "gactive",
        "gweight",
        "grate",
        "held",
        "gheld",
        "windows",
        "slots",
        "wake",
    ];
    for key in keys {
        let mut scene = scene("tampered").await;
        for (kind, make) in TYPES {
            let jobs = jobs(&mut scene).await;
            let key = key.replace("WAITING", jobs.waiting.as_str()).replace("HELD", jobs.held[0].id().as_str());
            let key = key.replace("DEAD", jobs.dead.as_str());
            let label = format!("{key} as a {kind}");
            scene.command(&format!("DEL @{key}")).await;
            scene.command(&make.replace("KEY", &format!("@{key}"))).await;
            every_verb(&mut scene, &jobs, true, &label).await;
            scene.command(&format!("DEL @{key}")).await;
            goes_on(&mut scene, &label).await;
            scene.command("DEL @pending @active @schedule @dead @done @de:k").await;
        }
    }
}

#[tokio::test]
async fn garbage_in_any_field_of_a_row_stops_no_verb_and_no_other_job() {
    let fields = [
        "state",
        "attempts",
        "payload",
        "name",
        "worker",
        "failures",
        "stalled",
        "priority",
        "max_attempts",
        "headers",
        "did",
        "nonce",
        "reaped",
        "settled",
        "last_error",
        "group",
        "\u{fffd}",
    ];
    for field in fields {
        let mut scene = scene("tampered").await;
        for garbage in GARBAGE {
            let label = format!("{field} = {:?}", garbage.escape_ascii().to_string());
            let jobs = jobs(&mut scene).await;
            let ids = jobs.held.iter().map(Lease::id).chain([jobs.dead, jobs.waiting]);
            for id in ids.collect::<Vec<_>>() {
                let key = format!("@job:{id}");
                let field = if field == "\u{fffd}" { b"\xff".as_slice() } else { field.as_bytes() };
                scene.bytes_command(&[b"HSET", key.as_bytes(), field, garbage]).await;
                let stored = scene.queue.get(id).await.unwrap_or_else(|error| panic!("{label}: {error}"));
                assert!(stored.is_some(), "{label}");
            }
            every_verb(&mut scene, &jobs, false, &label).await;
            goes_on(&mut scene, &label).await;
            scene.command("DEL @pending @active @schedule @dead @de:k").await;
        }
    }
}

#[tokio::test]
async fn an_id_of_any_bytes_is_dropped_with_a_count_in_each_place() {
    let mut scene = scene("tampered").await;
    let huge = vec![b'x'; 1 << 20];
    let ids = GARBAGE.into_iter().chain([b"JOB\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".as_slice(), &huge]);
    for id in ids {
        let label = id[..id.len().min(20)].escape_ascii().to_string();
        for set in ["pending", "active", "schedule", "dead", "done"] {
            let key = format!("@{set}");
            scene.bytes_command(&[b"ZADD", key.as_bytes(), b"1", id]).await;
        }
        for place in [Place::Pending, Place::Active, Place::Scheduled, Place::Dead, Place::Finished] {
            assert_eq!(scene.queue.list(place, 0, 10).await.unwrap(), [], "{place:?} {label}");
        }
        let queue = scene.queue.clone();
        assert_eq!(queue.reap(None).await.unwrap().dropped, 1, "{label}");
        assert_eq!(queue.promote().await.unwrap().dropped, 1, "{label}");
        assert_eq!(scene.claimer().claim(10).await.unwrap().dropped, 1, "{label}");
        queue.trim(Keep { count: 0, ..Keep::default() }).await.unwrap();
        goes_on(&mut scene, &label).await;
        scene.command("DEL @dead @done").await;
    }
}

#[tokio::test]
async fn a_note_of_the_last_claim_that_somebody_wrote_is_as_good_as_none() {
    let mut scene = scene("tampered").await;
    let held = scene.claimed().await;
    let id = held.id();
    let notes = [
        String::new(),
        "|".into(),
        "1".into(),
        "1|".into(),
        "1|x|x:y".into(),
        format!("1|0|{id}:"),
        format!("1|0|{id}:2"),
        format!("1|0|{id}1"),
        format!("1|0|{id}:garbage"),
        format!("1|0|:{id}"),
        format!("1|0|JOB0JZGkP9AMvv:1|{id}:99"),
    ];
    for note in notes {
        let key = format!("emq:{{{}}}:claims", scene.queue.name());
        let mut claimer = scene.claimer();
        scene.raw.command(&["HSET", &key, claimer.worker(), &note]).await;
        let expected = scene.enqueue().await;
        let batch = claimer.claim(10).await.unwrap_or_else(|error| panic!("{note:?}: {error}"));
        // The request that the note speaks of was answered by it; the next one takes what waits.
        let jobs = if batch.jobs.is_empty() { claimer.claim(10).await.unwrap().jobs } else { batch.jobs };
        assert_eq!(jobs.iter().map(|job| job.lease.id()).collect::<Vec<_>>(), [expected], "{note:?}");
        scene.queue.complete(&jobs[0].lease, Completion::empty()).await.unwrap();
    }
    // A token that is none, in the note as in the row: its holder can't be told, and the others are.
    scene.command(&format!("HSET @job:{id} attempts garbage")).await;
    let key = format!("emq:{{{}}}:claims", scene.queue.name());
    let mut claimer = scene.claimer();
    scene.raw.command(&["HSET", &key, claimer.worker(), &format!("1|0|{id}:garbage")]).await;
    let batch = claimer.claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.dropped), (0, 1));
    scene.expire(id).await;
    assert_eq!(scene.queue.reap(None).await.unwrap().recovered, [id], "it comes back as any whose worker is gone");
}

#[tokio::test]
async fn a_token_of_any_size_that_isnt_the_jobs_is_refused() {
    let mut scene = scene("tampered").await;
    let queue = scene.queue.clone();
    let id = scene.claimed().await.id();
    for token in [0, 2, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, i64::MAX as u64, u64::MAX] {
        let lease = Lease::new(id, token);
        let complete = queue.complete(&lease, Completion::empty());
        assert_eq!(scene.unchanged(complete).await.unwrap(), Settled::Stale, "{token}");
        assert_eq!(scene.unchanged(queue.bury(&lease, "no")).await.unwrap(), Settled::Stale, "{token}");
        assert_eq!(scene.unchanged(queue.extend(&[lease], LEASE)).await.unwrap(), [emq::Extended::Lost], "{token}");
    }
    goes_on(&mut scene, "other tokens").await;
}

#[tokio::test]
async fn a_number_of_any_size_is_stored_as_it_is() {
    let mut scene = scene("tampered").await;
    for (at, number) in [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX].into_iter().enumerate() {
        let priority = [i32::MIN, -1, 0, 1, i32::MAX][at];
        let draft = Draft::of(Work { n: number }).max_attempts(number).priority(priority);
        let id = scene.enqueue_as(draft.header("", "").header("\0", "\u{202e}\r\n")).await;
        let job = scene.claim().await;
        assert_eq!((job.lease.id(), job.max_attempts), (id, Some(number.max(1))));
        assert_eq!((job.headers[""].as_str(), job.headers["\0"].as_str()), ("", "\u{202e}\r\n"));
        assert_eq!(scene.queue.release(&job.lease).await.unwrap(), Settled::Accepted);
        assert_eq!(scene.score("pending", id).await, f64::from(priority));
        let lease = scene.claim().await.lease;
        scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    }
}

#[tokio::test]
async fn the_first_and_the_last_id_are_jobs_like_any_other() {
    let mut scene = scene("tampered").await;
    for id in ["JOB00000000000", "JOBAzL8n0Y58m7"] {
        let id: JobId = id.parse().unwrap();
        scene.enqueue_as(Draft::of(Work { n: 0 }).id(id)).await;
        let job = scene.claim().await;
        assert_eq!(job.lease.id(), id);
        assert_eq!(scene.queue.complete(&job.lease, Completion::empty()).await.unwrap(), Settled::Accepted);
        assert_eq!(scene.queue.state(id).await.unwrap(), Some(emq::JobState::Finished));
    }
}

#[tokio::test]
async fn a_worker_of_any_name_claims_and_leaves() {
    let mut scene = scene("tampered").await;
    let huge = "n".repeat(1 << 20);
    for name in ["", "\0", "|", ":", "a|1|b:2", "w\r\n-ERR", "Ω 🦀 \u{202e}", &huge] {
        let id = scene.enqueue().await;
        let mut claimer = scene.queue.claimer(name);
        let job = claimer.claim(1).await.unwrap().jobs.remove(0);
        assert_eq!(job.lease.id(), id);
        let stored = scene.queue.get(id).await.unwrap().unwrap();
        assert!(stored.worker.as_deref() == Some(claimer.worker()));
        scene.queue.complete(&job.lease, Completion::empty()).await.unwrap();
        claimer.leave().await.unwrap();
        assert_eq!(scene.command("EXISTS @claims").await.int(), 0);
    }
}
