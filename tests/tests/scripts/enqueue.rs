use std::time::Duration;

use emq::{Admission, Draft, EnqueueError};

use crate::scene::{MINUTE, Work, assert_after, scene, script};

#[tokio::test]
async fn writes_a_small_row_and_one_place() {
    let mut scene = scene("enqueue").await;
    let call = scene.client.enqueue(Work { n: 7 }).queue(scene.queue.name().as_str());
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    scene.show(id);
    let (ticket, changes) = scene.changes(call.id(id).into_future()).await;
    assert_eq!(ticket.unwrap().admission(), Admission::Enqueued);
    assert_eq!(
        changes,
        [
            "+ job:J1 hash attempts = 0",
            "+ job:J1 hash name = work",
            "+ job:J1 hash payload = {\"n\":7}",
            "+ job:J1 hash state = pending",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 0",
        ]
    );
}

#[tokio::test]
async fn writes_what_is_said_about_a_job_and_nothing_else() {
    let mut scene = scene("enqueue").await;
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    scene.show(id);
    let draft = Draft::of(Work { n: 7 }).id(id).unique("a key").priority(-3).max_attempts(2).header("tenant", "north");
    let draft = draft.delay(MINUTE).queue(scene.queue.name().as_str());
    let call = scene.client.enqueue_many([draft]);
    let before = scene.now().await;
    let (tickets, changes) = scene.changes(call.into_future()).await;
    let after = scene.now().await;
    assert_eq!(tickets.unwrap().len(), 1);
    assert_eq!(
        changes,
        [
            // A key that isn't plain is hashed.
            "+ de:h.c0c633ea507118a55f3193db0e83afbdd3faa662 string = J1",
            "+ job:J1 hash attempts = 0",
            "+ job:J1 hash did = h.c0c633ea507118a55f3193db0e83afbdd3faa662",
            "+ job:J1 hash headers = {\"tenant\":\"north\"}",
            "+ job:J1 hash max_attempts = 2",
            "+ job:J1 hash more = 1",
            "+ job:J1 hash name = work",
            "+ job:J1 hash payload = {\"n\":7}",
            "+ job:J1 hash priority = -3",
            "+ job:J1 hash state = scheduled",
            "+ marker zset 0 @ 0",
            "+ schedule zset J1 @ T",
        ]
    );
    assert_after(scene.score("schedule", id).await, MINUTE, before, after);
}

#[tokio::test]
async fn wakes_only_for_a_job_that_is_due_before_all_others() {
    let mut scene = scene("enqueue").await;
    scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    scene.command("DEL @marker").await;
    scene.enqueue_as(Draft::of(Work { n: 1 }).delay(MINUTE * 2)).await;
    assert_eq!(scene.command("EXISTS @marker").await.int(), 0);
    scene.enqueue_as(Draft::of(Work { n: 2 }).delay(MINUTE / 2)).await;
    assert_eq!(scene.command("EXISTS @marker").await.int(), 1);
}

#[tokio::test]
async fn an_id_that_is_there_is_a_duplicate_in_every_state() {
    let mut scene = scene("enqueue").await;
    let id = scene.enqueue().await;
    let call = scene.queue.enqueue(Work { n: 0 }).id(id).into_future();
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "pending");

    let lease = scene.claim().await.lease;
    let call = scene.queue.enqueue(Work { n: 0 }).id(id).into_future();
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "active");

    scene.queue.retry(&lease, MINUTE, "no").await.unwrap();
    let call = scene.queue.enqueue(Work { n: 0 }).id(id).into_future();
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "scheduled");

    scene.make_due(id).await;
    scene.queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "no").await.unwrap();
    let call = scene.queue.enqueue(Work { n: 0 }).id(id).into_future();
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "dead");

    scene.queue.revive(id).await.unwrap();
    let lease = scene.claim().await.lease;
    scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    // Of a finished job the payload isn't known any more.
    let call = scene.queue.enqueue(Work { n: 5 }).id(id).into_future();
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "finished");
}

#[tokio::test]
async fn an_id_with_another_payload_is_a_conflict() {
    let mut scene = scene("enqueue").await;
    let id = scene.enqueue().await;
    let call = scene.queue.enqueue(Work { n: 99 }).id(id).into_future();
    let error = scene.unchanged(call).await.unwrap_err();
    assert!(matches!(error, EnqueueError::Conflict { id: with } if with == id), "{error}");
}

#[tokio::test]
async fn an_id_whose_memory_is_overdue_is_new() {
    let mut scene = scene("enqueue").await;
    let lease = scene.claimed().await;
    scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    scene.command(&format!("ZADD @done 1 {}", lease.id())).await;
    let call = scene.queue.enqueue(Work { n: 0 }).id(lease.id()).into_future();
    let (ticket, changes) = scene.changes(call).await;
    assert_eq!(ticket.unwrap().admission(), Admission::Enqueued);
    assert_eq!(changes[0], "- done zset J1 @ 1");
    assert_eq!(changes.last().unwrap(), "+ pending zset J1 @ 0");
}

#[tokio::test]
async fn a_key_that_is_held_makes_a_duplicate_of_its_holder() {
    let mut scene = scene("enqueue").await;
    let holder = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("invoice-42")).await;
    let call = scene.queue.enqueue(Work { n: 1 }).unique("invoice-42").into_future();
    let ticket = scene.unchanged(call).await.unwrap();
    assert_eq!((ticket.admission(), ticket.id()), (Admission::Duplicate(holder), holder));
    let other = scene.queue.enqueue(Work { n: 1 }).unique("invoice-43").await.unwrap();
    assert!(!other.is_duplicate());
}

#[tokio::test]
async fn within_one_call_an_id_and_a_key_are_taken_once() {
    let mut scene = scene("enqueue").await;
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    let name = scene.queue.name().to_string();
    let drafts = [
        Draft::of(Work { n: 0 }).id(id),
        Draft::of(Work { n: 0 }).id(id),
        Draft::of(Work { n: 1 }).id(id),
        Draft::of(Work { n: 2 }).unique("k"),
        Draft::of(Work { n: 3 }).unique("k"),
    ];
    let error = scene.client.enqueue_many(drafts.map(|draft| draft.queue(&name))).await.unwrap_err();
    let tickets: Vec<_> = error.outcomes.iter().map(|outcome| outcome.as_ref().map(emq::Ticket::admission)).collect();
    assert!(matches!(tickets[0], Ok(Admission::Enqueued)));
    assert!(matches!(tickets[1], Ok(Admission::Duplicate(of)) if of == id));
    assert!(matches!(tickets[2], Err(EnqueueError::Conflict { .. })));
    assert!(matches!(tickets[3], Ok(Admission::Enqueued)));
    let holder = error.outcomes[3].as_ref().unwrap().id();
    assert!(matches!(tickets[4], Ok(Admission::Duplicate(of)) if of == holder));
    assert_eq!(scene.command("ZCARD @pending").await.int(), 2);
}

#[tokio::test]
async fn an_id_of_another_kind_is_refused_with_the_whole_call() {
    let mut scene = scene("enqueue").await;
    let script = script("enqueue");
    let keys = ["job:", "pending", "schedule", "done", "de:", "marker", ""];
    let keys = keys.map(|key| format!("emq:{{{}}}:{key}", scene.queue.name()));
    for bad in ["USR0KHTOWnGLuC", "", "JOB", "JOB0JZGkP9AMvvv", "job0JZGkP9AMvv"] {
        let mut args = vec!["EVAL", &script, "7"];
        args.extend(keys.iter().map(String::as_str));
        args.extend(["", "1", "JOB0JZGkP9AMvv", "", "", "{}", "0", bad, "", "", "{}", "0"]);
        let reply = scene.raw.command(&args).await;
        assert!(reply.to_string().starts_with("(error) EMQKIND "), "{bad:?}: {reply}");
    }
    assert!(scene.dump().await.is_empty(), "the job before the bad one isn't admitted either");
}

#[tokio::test]
async fn a_delay_of_nothing_waits_at_once_and_a_part_of_a_ms_is_a_ms() {
    let mut scene = scene("enqueue").await;
    let now = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(Duration::ZERO)).await;
    assert_eq!(scene.score("pending", now).await, 0.0);
    let before = scene.now().await;
    let soon = scene.enqueue_as(Draft::of(Work { n: 1 }).delay(Duration::from_nanos(1))).await;
    let after = scene.now().await;
    assert_after(scene.score("schedule", soon).await, Duration::from_millis(1), before, after);
}

#[tokio::test]
async fn a_type_has_a_priority_of_its_own_and_an_enqueue_may_say_another() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Urgent {}

    impl emq::Job for Urgent {
        const NAME: &'static str = "urgent";
        const OPTIONS: emq::JobOptions = emq::JobOptions::new().priority(-10);
    }

    let mut scene = scene("enqueue").await;
    let own = scene.queue.enqueue(Urgent {}).await.unwrap().id();
    let other = scene.queue.enqueue(Urgent {}).priority(3).await.unwrap().id();
    assert_eq!((scene.score("pending", own).await, scene.score("pending", other).await), (-10.0, 3.0));
}

#[tokio::test]
async fn a_job_that_is_parked_under_an_id_whose_memory_is_over_is_no_finished_one() {
    let mut scene = scene("enqueue").await;
    let queue = scene.queue.clone();
    queue.enqueue(Work { n: 0 }).unique("k").await.unwrap();
    scene.claim().await;
    let id: emq::JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    scene.command(&format!("ZADD @done 1 {id}")).await;
    let follower = queue.enqueue(Work { n: 1 }).id(id).unique(emq::Unique::key("k").then_once());
    assert!(matches!(follower.await.unwrap().admission(), Admission::Parked(_)));
    assert_eq!(scene.command("EXISTS @done").await.int(), 0);
}

#[tokio::test]
async fn a_parked_job_has_the_time_of_the_last_enqueue_but_none_beyond_its_latest() {
    let mut scene = scene("enqueue").await;
    let queue = scene.queue.clone();
    queue.enqueue(Work { n: 0 }).unique("k").await.unwrap();
    let lease = scene.claim().await.lease;
    let follows = || emq::Unique::key("k").debounce(MINUTE).then_once();
    let before = scene.now().await;
    let parked = queue.enqueue(Work { n: 1 }).unique(follows()).delay(5 * MINUTE).await.unwrap();
    assert_eq!(parked.admission(), Admission::Parked(lease.id()));
    let due = scene.field(parked.id(), "due").await.unwrap().parse().unwrap();
    assert_after(due, MINUTE, before, scene.now().await);
    let before = scene.now().await;
    let merged = queue.enqueue(Work { n: 2 }).unique(follows()).delay(MINUTE / 2).await.unwrap();
    assert_eq!(merged.admission(), Admission::Replaced(parked.id()));
    let due = scene.field(parked.id(), "due").await.unwrap().parse().unwrap();
    assert_after(due, MINUTE / 2, before, scene.now().await);
    queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    assert_eq!(scene.score("schedule", parked.id()).await, due);
}
