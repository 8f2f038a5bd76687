//! What others have written into the keys, by hand or by mistake: no job is lost to it, and no queue stops.

use emq::{Admission, Completion, Draft, EnqueueError, Extended, JobState, Keep, Lease, Removed, Revived, Settled};

use crate::scene::{LEASE, MINUTE, Scene, Work, scene};

const GHOST: &str = "JOB0JZGkP9AMvv";

#[tokio::test]
async fn an_id_without_a_row_is_dropped_counted_and_gets_none() {
    let mut scene = scene("bad").await;
    for set in ["pending", "schedule", "active"] {
        scene.command(&format!("ZADD @{set} 0 {GHOST}")).await;
    }
    scene.enqueue().await;
    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.dropped, batch.jobs.len()), (1, 1));
    assert_eq!(scene.queue.promote().await.unwrap().dropped, 1);
    let reaped = scene.queue.reap(Some(3)).await.unwrap();
    assert_eq!((reaped.dropped, reaped.recovered.len()), (1, 0));
    assert_eq!(scene.command(&format!("EXISTS @job:{GHOST}")).await.int(), 0);

    scene.command(&format!("ZADD @dead 0 {GHOST}")).await;
    let ghost = GHOST.parse().unwrap();
    let queue = scene.queue.clone();
    assert_eq!(scene.unchanged(queue.revive(ghost)).await.unwrap(), Revived::Gone);
    assert_eq!(scene.unchanged(queue.remove(ghost)).await.unwrap(), Removed::Gone);
    let lease = Lease::new(ghost, 1);
    scene.command(&format!("ZADD @active 1e15 {GHOST}")).await;
    assert_eq!(scene.unchanged(queue.complete(&lease, Completion::empty())).await.unwrap(), Settled::Gone);
    assert_eq!(scene.unchanged(queue.extend(&[lease], LEASE)).await.unwrap(), [Extended::Lost]);
}

#[tokio::test]
async fn a_claim_that_finds_nothing_but_ids_without_rows_brings_nothing() {
    let mut scene = scene("bad").await;
    scene.command(&format!("ZADD @pending 0 {GHOST}")).await;
    let mut claimer = scene.claimer();
    let (batch, changes) = scene.changes(claimer.claim(10)).await;
    let batch = batch.unwrap();
    assert_eq!((batch.dropped, batch.jobs.len(), batch.more), (1, 0, false));
    assert_eq!(changes, [format!("- pending zset {GHOST} @ 0")]);
}

#[tokio::test]
async fn a_row_of_another_type_is_as_good_as_none() {
    let mut scene = scene("bad").await;
    scene.command(&format!("SET @job:{GHOST} text")).await;
    for set in ["pending", "schedule", "active"] {
        scene.command(&format!("ZADD @{set} 0 {GHOST}")).await;
    }
    let id = scene.enqueue().await;
    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.dropped, batch.jobs[0].lease.id()), (1, id));
    assert_eq!(scene.queue.promote().await.unwrap().dropped, 1);
    assert_eq!(scene.queue.reap(None).await.unwrap().dropped, 1);
    let call = scene.queue.enqueue(Work { n: 0 }).id(GHOST.parse().unwrap()).into_future();
    assert!(scene.unchanged(call).await.is_err(), "the id can't be used");

    // Nor does it stop the others of its call.
    let drafts = ["JOB00000000001", GHOST]
        .map(|id| Draft::of(Work { n: 0 }).queue(scene.queue.name().as_str()).id(id.parse().unwrap()));
    let outcomes = scene.client.enqueue_many(drafts).await.unwrap_err().outcomes;
    assert!(!outcomes[0].as_ref().unwrap().is_duplicate());
    assert!(matches!(outcomes[1], Err(EnqueueError::Conflict { .. })), "{outcomes:?}");
}

#[tokio::test]
async fn a_row_that_has_lost_its_attempts_is_a_job_that_no_token_holds() {
    let mut scene = scene("bad").await;
    let lease = scene.claimed().await;
    scene.command(&format!("HDEL @job:{} attempts", lease.id())).await;
    let queue = scene.queue.clone();
    assert_eq!(scene.unchanged(queue.complete(&lease, Completion::empty())).await.unwrap(), Settled::Stale);
    assert_eq!(scene.unchanged(queue.release(&lease)).await.unwrap(), Settled::Stale);
    assert_eq!(scene.unchanged(queue.extend(&[lease], LEASE)).await.unwrap(), [Extended::Lost]);
    scene.expire(lease.id()).await;
    assert_eq!(queue.reap(None).await.unwrap().recovered, [lease.id()]);
}

#[tokio::test]
async fn an_id_that_is_not_a_jobs_is_dropped_even_if_it_has_a_row() {
    let mut scene = scene("bad").await;
    for foreign in ["leftover", "USR0KHTOWnGLuC", "JOB0JZGkP9AMv-", "JOB"] {
        scene.command(&format!("HSET @job:{foreign} attempts 0 state pending payload {{}}")).await;
        for set in ["pending", "schedule", "active"] {
            scene.command(&format!("ZADD @{set} 0 {foreign}")).await;
        }
    }
    // Its number is out of range, which the script doesn't see.
    scene.command("HSET @job:JOBzzzzzzzzzzz attempts 0 state pending payload {}").await;
    scene.command("ZADD @pending 0 JOBzzzzzzzzzzz").await;
    let id = scene.enqueue().await;
    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.dropped, batch.jobs.len()), (5, 1));
    assert_eq!(batch.jobs[0].lease.id(), id);
    assert_eq!(scene.queue.promote().await.unwrap().dropped, 4);
    assert_eq!(scene.queue.reap(None).await.unwrap().dropped, 4);
}

/// Takes a job with a field that somebody has written to once round, and asserts that it is in one place each time.
async fn once_round(scene: &mut Scene, id: emq::JobId, field: &str, value: &str) {
    let queue = scene.queue.clone();
    let spoil = async |scene: &mut Scene| {
        let key = format!("@job:{id}");
        let args: [&[u8]; 4] = [b"HSET", key.as_bytes(), field.as_bytes(), value.as_bytes()];
        scene.bytes_command(&args).await;
    };
    let label = format!("{field} = {value:?}");
    spoil(scene).await;
    let job = scene.claim().await;
    assert_eq!(job.lease.id(), id, "{label}");
    if field != "attempts" {
        spoil(scene).await;
    }
    assert_eq!(queue.retry(&job.lease, MINUTE, "no").await.unwrap(), Settled::Accepted, "{label}");
    spoil(scene).await;
    scene.make_due(id).await;
    assert_eq!(queue.promote().await.unwrap().count, 1, "{label}");
    scene.claim().await;
    spoil(scene).await;
    scene.expire(id).await;
    assert_eq!(queue.reap(Some(1_000)).await.unwrap().recovered.len(), 1, "{label}");
    let lease = scene.claim().await.lease;
    if field != "attempts" {
        spoil(scene).await;
    }
    assert_eq!(queue.bury(&lease, "no").await.unwrap(), Settled::Accepted, "{label}");
    spoil(scene).await;
    assert_eq!(queue.revive(id).await.unwrap(), Revived::Revived, "{label}");
    let lease = scene.claim().await.lease;
    assert_eq!(queue.release(&lease).await.unwrap(), Settled::Accepted, "{label}");
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.pending, counts.unfinished(), counts.dead), (1, 1, 0), "{label}");
    queue.get(id).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_number_that_is_none_loses_no_job() {
    for field in ["attempts", "failures", "stalled", "priority", "max_attempts"] {
        for value in
            ["", "garbage", "nan", "inf", "-inf", "-7", "1.5", "1e300", "0x10", "9223372036854775807", " 3", "\0"]
        {
            let mut scene = scene("bad").await;
            let id = scene.enqueue().await;
            // A stall count beyond every limit may well bury the job; that is what it says.
            if field == "stalled" && ["inf", "1e300", "9223372036854775807"].contains(&value) {
                continue;
            }
            once_round(&mut scene, id, field, value).await;
        }
    }
}

#[tokio::test]
async fn a_missing_field_loses_no_job() {
    for field in ["attempts", "payload", "state", "name"] {
        let mut scene = scene("bad").await;
        let queue = scene.queue.clone();
        let id = scene.enqueue().await;
        let strip = format!("HDEL @job:{id} {field}");
        scene.command(&strip).await;
        let call = queue.enqueue(Work { n: 0 }).id(id).into_future();
        let _ = scene.unchanged(call).await;
        let job = scene.claim().await;
        assert_eq!((job.lease.id(), job.lease.token()), (id, 1), "{field}");
        if field == "payload" {
            assert!(job.payload.is_empty());
            assert!(job.decode::<Work>().is_err());
        }
        assert_eq!(queue.snooze(&job.lease, MINUTE).await.unwrap(), Settled::Accepted);
        scene.command(&strip).await;
        scene.make_due(id).await;
        assert_eq!(queue.promote().await.unwrap().count, 1, "{field}");
        scene.claim().await;
        scene.command(&strip).await;
        scene.expire(id).await;
        assert_eq!(queue.reap(None).await.unwrap().recovered, [id], "{field}");
        scene.command(&strip).await;
        assert_eq!(queue.remove(id).await.unwrap(), Removed::Removed, "{field}");
    }
}

#[tokio::test]
async fn a_counter_that_is_none_stops_no_transition() {
    for (metric, bad) in
        [("completed", "HSET @metrics:completed count x"), ("failed", "HSET @metrics:failed count -9e9")]
    {
        let mut scene = scene("bad").await;
        let queue = scene.queue.clone();
        let leases = [scene.claimed().await, scene.claimed().await, scene.claimed().await];
        scene.command(bad).await;
        assert_eq!(queue.counts().await.unwrap().active, 3);
        assert_eq!(queue.complete(&leases[0], Completion::empty()).await.unwrap(), Settled::Accepted);
        assert_eq!(queue.bury(&leases[1], "no").await.unwrap(), Settled::Accepted);
        scene.command(&format!("DEL @metrics:{metric}")).await;
        scene.command(&format!("SET @metrics:{metric} text")).await;
        scene.expire(leases[2].id()).await;
        assert_eq!(queue.reap(Some(1)).await.unwrap().dead, [leases[2].id()]);
        assert_eq!(scene.command("ZCARD @dead").await.int(), 2);
    }
}

#[tokio::test]
async fn a_marker_of_another_type_stops_no_transition() {
    let mut scene = scene("bad").await;
    scene.command("SET @marker text").await;
    let lease = scene.claimed().await;
    assert_eq!(scene.queue.release(&lease).await.unwrap(), Settled::Accepted);
    let lease = scene.claim().await.lease;
    assert_eq!(scene.queue.snooze(&lease, MINUTE).await.unwrap(), Settled::Accepted);
}

#[tokio::test]
async fn a_place_of_another_type_is_an_error_and_nothing_is_written() {
    for set in ["pending", "active", "schedule", "dead", "done"] {
        let mut scene = scene("bad").await;
        let queue = scene.queue.clone();
        let dead = scene.dead().await;
        let waiting = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
        let stale = scene.claimed().await;
        scene.expire(stale.id()).await;
        let lease = scene.claimed().await;
        let pending = scene.enqueue().await;
        let other = scene.enqueue().await;
        scene.make_due(waiting).await;
        scene.command(&format!("DEL @{set}")).await;
        scene.command(&format!("SET @{set} text")).await;

        let mut refused = Vec::new();
        macro_rules! calls {
            ($($name:literal $call:expr),+ $(,)?) => {$(
                let (answer, changes) = scene.changes($call).await;
                if answer.is_err() {
                    assert_eq!(changes, Vec::<String>::new(), "{} with a bad {set}", $name);
                    refused.push($name);
                }
            )+};
        }
        let mut claimer = scene.claimer();
        calls!(
            "cancel" queue.cancel(other),
            "admit" queue.enqueue(Work { n: 1 }).into_future(),
            "enqueue" queue.enqueue(Work { n: 1 }).priority(1).into_future(),
            "enqueue later" queue.enqueue(Work { n: 1 }).delay(MINUTE).into_future(),
            "claim" claimer.claim(10),
            "extend" queue.extend(&[lease], LEASE),
            "retry" queue.retry(&lease, MINUTE, "no"),
            "snooze" queue.snooze(&lease, MINUTE),
            "release" queue.release(&lease),
            "bury" queue.bury(&lease, "no"),
            "complete" queue.complete(&lease, Completion::empty()),
            "promote" queue.promote(),
            "reap" queue.reap(Some(1)),
            "revive" queue.revive(dead),
            "remove" queue.remove(pending),
            "trim" queue.trim(Keep { count: 0, ..Keep::default() }),
        );
        let needed = match set {
            "pending" => "cancel, admit, enqueue, enqueue later, claim, release, promote, reap, revive, remove",
            "active" => "cancel, claim, extend, retry, snooze, release, bury, complete, reap, remove",
            "schedule" => "cancel, enqueue, enqueue later, claim, retry, snooze, promote, remove",
            "dead" => "cancel, bury, reap, revive, remove, trim",
            _ => "cancel, admit, enqueue, enqueue later, complete, remove, trim",
        };
        assert_eq!(refused.join(", "), needed, "with a bad {set}");
    }
}

#[tokio::test]
async fn a_key_of_another_type_or_of_a_job_that_is_gone_is_free() {
    for bad in ["RPUSH @de:k text", "SET @de:k JOB0JZGkP9AMvv", "SET @de:k garbage", "SET @de:k JOB0JZGkP9AMv-"] {
        let mut scene = scene("bad").await;
        scene.command(bad).await;
        let id = scene.enqueue_as(Draft::of(Work { n: 0 }).unique("k")).await;
        assert_eq!(scene.command("GET @de:k").await.text(), id.as_str(), "{bad}");

        // And it stops neither burial nor revival.
        let lease = scene.claim().await.lease;
        scene.command("DEL @de:k").await;
        scene.command(bad).await;
        assert_eq!(scene.queue.bury(&lease, "no").await.unwrap(), Settled::Accepted, "{bad}");
        assert_eq!(scene.command("EXISTS @de:k").await.int(), 1, "it wasn't this job's");
        assert_eq!(scene.queue.revive(id).await.unwrap(), Revived::Revived, "{bad}");
        assert_eq!(scene.command("GET @de:k").await.text(), id.as_str(), "{bad}");
        let ticket = scene.queue.enqueue(Work { n: 1 }).unique("k").await.unwrap();
        assert_eq!(ticket.admission(), Admission::Duplicate(id));
    }
}

#[tokio::test]
async fn a_job_of_a_lane_stays_one_and_runs() {
    let mut scene = scene("bad").await;
    let queue = scene.queue.clone();
    let id = scene.enqueue().await;
    scene.command(&format!("HSET @job:{id} group north")).await;
    let lease = scene.claim().await.lease;
    queue.retry(&lease, MINUTE, "no").await.unwrap();
    scene.make_due(id).await;
    queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    assert_eq!(scene.field(id, "group").await.as_deref(), Some("north"));
    assert_eq!(queue.complete(&lease, Completion::empty()).await.unwrap(), Settled::Accepted);
}

#[tokio::test]
async fn a_row_that_echomq_has_written_is_claimed_and_completed() {
    let mut scene = scene("bad").await;
    scene.command(&format!("HSET @job:{GHOST} state pending attempts 0 payload hello")).await;
    scene.command(&format!("ZADD @pending 0 {GHOST}")).await;
    let job = scene.claim().await;
    assert_eq!((job.name, job.payload), (None, "hello".into()));
    assert_eq!(scene.queue.complete(&job.lease, Completion::empty()).await.unwrap(), Settled::Accepted);
    assert_eq!(scene.queue.state(GHOST.parse().unwrap()).await.unwrap(), Some(JobState::Finished));
}

#[tokio::test]
async fn a_key_of_another_type_among_those_of_the_lanes_is_found_before_anything_is_written() {
    for (key, is_whole) in
        [("ring", true), ("paused", true), ("glimit", true), ("grate", true), ("held", true), ("slots", false)]
    {
        let mut scene = scene("bad").await;
        scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
        scene.enqueue().await;
        scene.command(&format!("DEL @{key}")).await;
        scene.command(&format!("SET @{key} text")).await;
        let mut claimer = scene.claimer();
        if is_whole {
            assert!(scene.unchanged(claimer.claim(10)).await.is_err(), "{key}");
        } else {
            let jobs = claimer.claim(10).await.unwrap().jobs;
            assert_eq!(jobs.len(), 2, "{key}");
            for job in jobs {
                assert!(scene.queue.complete(&job.lease, Completion::empty()).await.unwrap().is_settled());
            }
            assert_eq!(scene.command("EXISTS @gactive").await.int(), 0);
        }
    }
}

#[tokio::test]
async fn a_lane_whose_line_is_of_another_type_doesnt_stop_the_others() {
    let mut scene = scene("bad").await;
    for lane in ["a", "b"] {
        scene.enqueue_as(Draft::of(Work { n: 0 }).group(lane)).await;
    }
    scene.command("SET @g:a:pending text").await;
    let batch = scene.claimer().claim(10).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (1, false));
    // Its next job waits in the flat line.
    scene.enqueue_as(Draft::of(Work { n: 1 }).group("a")).await;
    scene.claim().await;
}

#[tokio::test]
async fn a_limit_that_is_no_number_is_none() {
    let mut scene = scene("bad").await;
    for text in ["many", "nan", ""] {
        scene.bytes_command(&[b"HSET", b"@glimit", b"a", text.as_bytes()]).await;
        scene.bytes_command(&[b"HSET", b"@meta", b"concurrency", text.as_bytes()]).await;
        for field in ["gweight", "grate"] {
            scene.bytes_command(&[b"HSET", format!("@{field}").as_bytes(), b"a", text.as_bytes()]).await;
        }
        for n in 0..3 {
            scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
        }
        assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 3, "{text:?}");
    }
}

#[tokio::test]
async fn a_row_of_which_little_is_left_keeps_its_id_taken() {
    for field in ["state", "payload", "attempts"] {
        let mut scene = scene("bad").await;
        scene.command(&format!("HSET @job:{GHOST} {field} 1")).await;
        let again = scene.queue.enqueue(Work { n: 0 }).id(GHOST.parse().unwrap()).into_future();
        let refused = scene.unchanged(again).await;
        assert!(matches!(refused, Err(EnqueueError::Conflict { .. })), "{field}: {refused:?}");
    }
}

#[tokio::test]
async fn a_rate_with_a_nothing_in_it_is_none() {
    for rate in ["0 60000 1", "1 0 1", "1 60000 0"] {
        let mut scene = scene("bad").await;
        scene.bytes_command(&[b"HSET", b"@grate", b"a", rate.as_bytes()]).await;
        scene.bytes_command(&[b"HSET", b"@meta", b"rate", rate.as_bytes()]).await;
        for n in 0..3 {
            scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
        }
        assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 3, "{rate}");
    }
}

#[tokio::test]
async fn a_limit_between_two_numbers_is_the_lower_one() {
    let mut scene = scene("bad").await;
    scene.command("HSET @glimit a 1.5").await;
    for n in 0..3 {
        scene.enqueue_as(Draft::of(Work { n }).group("a")).await;
    }
    assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 1);
    assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 0);
}

#[tokio::test]
async fn an_id_that_was_left_in_a_lane_puts_its_lane_into_the_ring_once() {
    let mut scene = scene("bad").await;
    scene.command(&format!("ZADD @g:a:pending 0 {GHOST}")).await;
    scene.command("RPUSH @ring a").await;
    scene.queue.enqueue(Work { n: 0 }).id(GHOST.parse().unwrap()).group("a").await.unwrap();
    assert_eq!(scene.command("LLEN @ring").await.int(), 1);
    assert_eq!(scene.claimer().claim(10).await.unwrap().jobs.len(), 1);
}
