//! Who holds a deduplication key, and who gets it next.

use std::time::Duration;

use emq::{Admission, Completion, Draft, JobId, JobState, Place, Revived, Settled, Ticket, Unique};

use crate::scene::{MINUTE, Scene, Work, assert_after, scene};

const KEY: &str = "k";

/// What becomes of an enqueue.
async fn enqueue(scene: &mut Scene, n: u32, unique: Unique) -> Ticket<Work> {
    enqueue_in(scene, n, unique, Duration::ZERO).await
}

async fn enqueue_in(scene: &mut Scene, n: u32, unique: Unique, delay: Duration) -> Ticket<Work> {
    let ticket = scene.queue.enqueue(Work { n }).unique(unique).delay(delay).await.unwrap();
    if matches!(ticket.admission(), Admission::Enqueued | Admission::Parked(_)) {
        scene.show(ticket.id());
    }
    ticket
}

async fn is_new(scene: &mut Scene, unique: Unique) -> bool {
    !matches!(enqueue(scene, 99, unique).await.admission(), Admission::Duplicate(_))
}

async fn holder(scene: &mut Scene) -> Option<String> {
    match scene.command("GET @de:k").await {
        support::Reply::Nil => None,
        reply => Some(reply.text().to_owned()),
    }
}

async fn ttl(scene: &mut Scene) -> i64 {
    scene.command("PTTL @de:k").await.int()
}

async fn complete(scene: &Scene, lease: &emq::Lease) {
    assert_eq!(scene.queue.complete(lease, Completion::empty()).await.unwrap(), Settled::Accepted);
}

/// The key's time is over, as far as the rows know.
async fn end_window(scene: &mut Scene, id: JobId) {
    scene.bytes_command(&[b"HSET", format!("@job:{id}").as_bytes(), b"unique", b"for 1"]).await;
}

#[tokio::test]
async fn a_row_says_how_its_key_is_held_only_where_that_is_not_the_default() {
    let mut scene = scene("unique").await;
    let unique = [
        (Unique::key("a"), None),
        (Unique::key("b").until_start(), Some("start")),
        (Unique::key("c").after_end(MINUTE), Some("after 60000")),
        (Unique::key("d").replace_payload().then_once(), None),
    ];
    for (unique, wanted) in unique {
        let id = enqueue(&mut scene, 0, unique).await.id();
        assert_eq!(scene.field(id, "unique").await.as_deref(), wanted);
    }
    let before = scene.now().await;
    let id = enqueue(&mut scene, 0, Unique::key("e").for_(MINUTE)).await.id();
    let after = scene.now().await;
    let window = scene.field(id, "unique").await.unwrap();
    assert_after(window.strip_prefix("for ").unwrap().parse().unwrap(), MINUTE, before, after);
    assert_eq!(scene.command("PTTL @de:e").await.int(), -1, "what an unfinished job holds has no TTL");
}

#[tokio::test]
async fn a_key_until_the_start_is_free_from_the_first_claim_on_and_stays_so() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).until_start();
    enqueue(&mut scene, 0, unique()).await;
    assert!(!is_new(&mut scene, unique()).await);
    let lease = scene.claim().await.lease;
    assert_eq!(holder(&mut scene).await, None);
    assert_eq!(scene.queue.retry(&lease, MINUTE, "no").await.unwrap(), Settled::Accepted);
    assert_eq!(holder(&mut scene).await, None, "a failed run doesn't take it again");
    let other = enqueue(&mut scene, 1, unique()).await;
    assert_eq!(other.admission(), Admission::Enqueued);
    scene.make_due(lease.id()).await;
    scene.queue.promote().await.unwrap();
    let leases: Vec<_> = scene.claimer().claim(2).await.unwrap().jobs.into_iter().map(|job| job.lease).collect();
    assert_eq!(leases.len(), 2);
    let third = enqueue(&mut scene, 2, unique()).await.id();
    for lease in &leases {
        complete(&scene, lease).await;
    }
    assert_eq!(holder(&mut scene).await, Some(third.to_string()), "whose key it is by now doesn't concern the others");
}

#[tokio::test]
async fn a_window_that_is_longer_than_the_job_outlives_it() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).for_(MINUTE);
    let id = enqueue(&mut scene, 0, unique()).await.id();
    let lease = scene.claim().await.lease;
    assert_eq!(ttl(&mut scene).await, -1);
    complete(&scene, &lease).await;
    assert!((1..=60_000).contains(&ttl(&mut scene).await));
    assert_eq!(
        enqueue(&mut scene, 1, unique()).await.admission(),
        Admission::Duplicate(id),
        "it says whose window it is"
    );
    assert_eq!(enqueue(&mut scene, 1, unique().then_once()).await.admission(), Admission::Duplicate(id));
    scene.command("PEXPIRE @de:k 1").await;
    while holder(&mut scene).await.is_some() {}
    assert_eq!(enqueue(&mut scene, 1, unique()).await.admission(), Admission::Enqueued);
}

#[tokio::test]
async fn a_window_that_is_shorter_than_the_job_lets_another_in_which_keeps_its_key() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).for_(MINUTE);
    let first = enqueue(&mut scene, 0, unique()).await.id();
    let lease = scene.claim().await.lease;
    end_window(&mut scene, first).await;
    let second = enqueue(&mut scene, 1, unique()).await;
    assert_eq!(second.admission(), Admission::Enqueued);
    complete(&scene, &lease).await;
    assert_eq!(holder(&mut scene).await, Some(second.id().to_string()), "the first one's end doesn't free it");
    assert_eq!(enqueue(&mut scene, 2, unique()).await.admission(), Admission::Duplicate(second.id()));
}

#[tokio::test]
async fn a_window_that_is_over_when_its_job_ends_leaves_nothing() {
    let mut scene = scene("unique").await;
    let id = enqueue(&mut scene, 0, Unique::key(KEY).for_(MINUTE)).await.id();
    let lease = scene.claim().await.lease;
    end_window(&mut scene, id).await;
    complete(&scene, &lease).await;
    assert_eq!(holder(&mut scene).await, None);
}

#[tokio::test]
async fn a_window_is_not_taken_for_that_of_a_job_whose_id_came_again() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).for_(MINUTE);
    let id = enqueue(&mut scene, 0, unique()).await.id();
    let lease = scene.claim().await.lease;
    complete(&scene, &lease).await;
    scene.command(&format!("ZADD @done 1 {id}")).await;
    for again in [None, Some("another")] {
        let draft = Draft::of(Work { n: 1 }).id(id).queue(scene.queue.name().as_str());
        let draft = if let Some(key) = again { draft.unique(key) } else { draft };
        assert!(!scene.client.enqueue_many([draft]).await.unwrap()[0].is_duplicate());
        let call = scene.queue.enqueue(Work { n: 2 }).unique(unique().replace_payload()).into_future();
        assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Duplicate(id), "{again:?}");
        scene.queue.remove(id).await.unwrap();
        if again.is_none() {
            assert!((1..=60_000).contains(&ttl(&mut scene).await));
        }
    }
}

#[tokio::test]
async fn a_rest_begins_when_the_job_has_ended_done_or_dead() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).after_end(MINUTE);
    enqueue(&mut scene, 0, unique()).await;
    let lease = scene.claim().await.lease;
    complete(&scene, &lease).await;
    assert!((1..=60_000).contains(&ttl(&mut scene).await));
    scene.command("DEL @de:k").await;

    let id = enqueue(&mut scene, 1, unique()).await.id();
    let lease = scene.claim().await.lease;
    assert_eq!(scene.queue.retry(&lease, Duration::ZERO, "no").await.unwrap(), Settled::Accepted);
    assert_eq!(ttl(&mut scene).await, -1, "a failure that is tried again is no end");
    scene.queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    assert_eq!(scene.queue.bury(&lease, "no").await.unwrap(), Settled::Accepted);
    assert!((1..=60_000).contains(&ttl(&mut scene).await));
    assert_eq!(enqueue(&mut scene, 2, unique()).await.admission(), Admission::Duplicate(id));
}

#[tokio::test]
async fn a_job_that_is_removed_takes_its_window_along() {
    let mut scene = scene("unique").await;
    for unique in [Unique::key(KEY).for_(MINUTE), Unique::key(KEY).after_end(MINUTE), Unique::key(KEY)] {
        let id = enqueue(&mut scene, 0, unique.clone()).await.id();
        scene.queue.remove(id).await.unwrap();
        assert_eq!(holder(&mut scene).await, None);
        // A dead letter whose window is still open, too.
        let id = enqueue(&mut scene, 0, unique).await.id();
        let lease = scene.claim().await.lease;
        scene.queue.bury(&lease, "no").await.unwrap();
        scene.queue.remove(id).await.unwrap();
        assert_eq!(holder(&mut scene).await, None);
    }
}

#[tokio::test]
async fn a_revived_job_takes_its_key_again_unless_another_has_it_or_the_window_is_over() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).for_(MINUTE);
    let id = enqueue(&mut scene, 0, unique()).await.id();
    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "no").await.unwrap();
    assert_eq!(scene.queue.revive(id).await.unwrap(), Revived::Revived);
    assert_eq!((holder(&mut scene).await, ttl(&mut scene).await), (Some(id.to_string()), -1), "out of its own window");

    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "no").await.unwrap();
    end_window(&mut scene, id).await;
    scene.command("DEL @de:k").await;
    assert_eq!(scene.queue.revive(id).await.unwrap(), Revived::Revived);
    assert_eq!(holder(&mut scene).await, None);

    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "no").await.unwrap();
    let other = enqueue(&mut scene, 1, Unique::key(KEY)).await.id();
    assert_eq!(scene.queue.revive(id).await.unwrap(), Revived::Revived);
    assert_eq!(holder(&mut scene).await, Some(other.to_string()));
}

#[tokio::test]
async fn a_waiting_job_takes_over_what_another_was_to_do_and_nothing_else() {
    let mut scene = scene("unique").await;
    let draft = Draft::of(Work { n: 0 }).unique(KEY).priority(-3).group("g").max_attempts(2).header("a", "1");
    let first = scene.enqueue_as(draft.expires_in(MINUTE)).await;
    let new = scene.queue.enqueue(Work { n: 1 }).unique(Unique::key(KEY).replace_payload());
    let new = new.priority(7).group("h").max_attempts(5).delay(MINUTE).id("JOB0JZGkP9AMvv".parse().unwrap());
    let (ticket, changes) = scene.changes(new.into_future()).await;
    let ticket = ticket.unwrap();
    assert_eq!((ticket.admission(), ticket.id(), ticket.is_duplicate()), (Admission::Replaced(first), first, false));
    let changes: Vec<_> = changes.into_iter().filter(|line| !line.contains("job:J1 hash expires")).collect();
    assert_eq!(
        changes,
        [
            "- job:J1 hash headers = {\"a\":\"1\"}",
            "~ job:J1 hash max_attempts = 5 (was 2)",
            "~ job:J1 hash payload = {\"n\":1} (was {\"n\":0})",
            "+ merged:JOB0JZGkP9AMvv (expires)",
            "+ merged:JOB0JZGkP9AMvv string = J1 ",
        ]
    );
    assert_eq!(scene.field(first, "expires").await, None);
    let job = scene.claim().await;
    assert_eq!((job.lease.id(), job.decode::<Work>().unwrap().n), (first, 1));
    let call = scene.queue.enqueue(Work { n: 2 }).unique(Unique::key(KEY).replace_payload()).into_future();
    let ticket = scene.unchanged(call).await.unwrap();
    assert_eq!(ticket.admission(), Admission::Duplicate(first), "what runs can't take anything over");
}

#[tokio::test]
async fn a_worker_that_lost_the_job_can_not_complete_what_it_has_not_seen() {
    let mut scene = scene("unique").await;
    let id = enqueue(&mut scene, 0, Unique::key(KEY)).await.id();
    let late = scene.claim().await.lease;
    scene.expire(id).await;
    scene.queue.reap(None).await.unwrap();
    assert_eq!(enqueue(&mut scene, 1, Unique::key(KEY).replace_payload()).await.admission(), Admission::Replaced(id));
    assert_eq!(scene.queue.complete(&late, Completion::empty()).await.unwrap(), Settled::Stale);
    assert_eq!(scene.claim().await.decode::<Work>().unwrap().n, 1);
}

#[tokio::test]
async fn a_debounced_job_is_put_off_but_not_beyond_its_latest() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).debounce(MINUTE * 3);
    let before = scene.now().await;
    let id = enqueue_in(&mut scene, 0, unique(), MINUTE).await.id();
    let after = scene.now().await;
    assert_after(scene.score("schedule", id).await, MINUTE, before, after);

    let start = scene.now().await;
    assert_eq!(enqueue_in(&mut scene, 1, unique(), MINUTE * 2).await.admission(), Admission::Replaced(id));
    let end = scene.now().await;
    assert_after(scene.score("schedule", id).await, MINUTE * 2, start, end);

    assert_eq!(enqueue_in(&mut scene, 2, unique(), MINUTE * 9).await.admission(), Admission::Replaced(id));
    assert_after(scene.score("schedule", id).await, MINUTE * 3, before, after);

    assert_eq!(enqueue_in(&mut scene, 3, unique(), Duration::ZERO).await.admission(), Admission::Replaced(id));
    assert_eq!(scene.field(id, "state").await.as_deref(), Some("pending"), "and it can be called up");
    assert_eq!(enqueue_in(&mut scene, 4, unique(), MINUTE).await.admission(), Admission::Replaced(id));
    let job = scene.claim().await;
    assert_eq!(job.decode::<Work>().unwrap().n, 4, "whose time has come isn't put off any more");
    assert_eq!(scene.queue.retry(&job.lease, MINUTE, "no").await.unwrap(), Settled::Accepted);
    let due = scene.score("schedule", id).await;
    assert_eq!(enqueue_in(&mut scene, 5, unique(), MINUTE * 2).await.admission(), Admission::Replaced(id));
    assert_eq!(scene.score("schedule", id).await, due, "its backoff stays");
}

#[tokio::test]
async fn a_debounced_job_that_is_due_and_not_yet_promoted_isnt_put_off_any_more() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).debounce(MINUTE * 3);
    let id = enqueue_in(&mut scene, 0, unique(), MINUTE).await.id();
    scene.make_due(id).await;
    assert_eq!(enqueue_in(&mut scene, 1, unique(), MINUTE).await.admission(), Admission::Replaced(id));
    assert_eq!(scene.score("schedule", id).await, 1.0);
}

#[tokio::test]
async fn a_parked_job_whose_row_was_lost_lets_the_key_go() {
    let mut scene = scene("unique").await;
    let first = enqueue(&mut scene, 0, Unique::key(KEY).then_once()).await.id();
    let lease = scene.claim().await.lease;
    let parked = enqueue(&mut scene, 1, Unique::key(KEY).then_once()).await;
    assert_eq!(parked.admission(), Admission::Parked(first));
    scene.command(&format!("DEL @job:{}", parked.id())).await;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    assert_eq!(scene.command(&format!("EXISTS @next:{KEY}")).await.int(), 0);
}

#[tokio::test]
async fn a_first_debounced_enqueue_keeps_within_its_own_latest() {
    let mut scene = scene("unique").await;
    let before = scene.now().await;
    let id = enqueue_in(&mut scene, 0, Unique::key(KEY).debounce(MINUTE), MINUTE * 5).await.id();
    let after = scene.now().await;
    assert_after(scene.score("schedule", id).await, MINUTE, before, after);
}

#[tokio::test]
async fn what_comes_while_the_holder_runs_is_parked_and_runs_once_after_it() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    let first = enqueue(&mut scene, 0, unique()).await.id();
    assert_eq!(
        enqueue(&mut scene, 1, unique()).await.admission(),
        Admission::Duplicate(first),
        "it waits, and comes after"
    );
    let lease = scene.claim().await.lease;
    scene.show("JOB0JZGkP9AMvv".parse().unwrap());
    let call = scene.queue.enqueue(Work { n: 2 }).unique(unique()).id("JOB0JZGkP9AMvv".parse().unwrap());
    let (second, changes) = scene.changes(call.into_future()).await;
    let second = second.unwrap();
    assert_eq!(second.admission(), Admission::Parked(first));
    assert_eq!(
        changes,
        [
            "+ job:J2 hash attempts = 0",
            "+ job:J2 hash behind = J1",
            "+ job:J2 hash did = k",
            "+ job:J2 hash more = 1",
            "+ job:J2 hash name = work",
            "+ job:J2 hash payload = {\"n\":2}",
            "+ job:J2 hash state = parked",
            "+ next:k string = J2",
            "+ parked zset J2 @ T",
        ]
    );
    assert_eq!(scene.queue.state(second.id()).await.unwrap(), Some(JobState::Parked));
    assert_eq!(scene.queue.list(Place::Parked, 0, 10).await.unwrap()[0].id, second.id());
    let third = enqueue(&mut scene, 3, unique()).await;
    assert_eq!((third.admission(), third.id()), (Admission::Replaced(second.id()), second.id()));
    assert_eq!(enqueue(&mut scene, 4, Unique::key(KEY)).await.admission(), Admission::Duplicate(first));

    scene.command("DEL @marker").await;
    let (_, changes) = scene.changes(complete_call(&scene, &lease)).await;
    let changes: Vec<_> = changes.into_iter().filter(|line| !line.contains("job:J1")).collect();
    assert_eq!(
        changes,
        [
            "- active zset J1 @ T",
            "~ de:k string = J2 (was J1)",
            "+ done zset J1 @ T",
            "~ job:J2 hash state = pending (was parked)",
            "+ marker zset 0 @ 0",
            "+ metrics:completed hash count = 1",
            "- next:k string = J2",
            "- parked zset J2 @ T",
            "+ pending zset J2 @ 0",
        ]
    );
    let job = scene.claim().await;
    assert_eq!((job.lease.id(), job.decode::<Work>().unwrap().n), (second.id(), 3));
}

fn complete_call(scene: &Scene, lease: &emq::Lease) -> impl Future<Output = Settled> + use<> {
    let (queue, lease) = (scene.queue.clone(), *lease);
    async move { queue.complete(&lease, Completion::empty()).await.unwrap() }
}

#[tokio::test]
async fn a_parked_job_goes_on_however_the_one_in_front_ends() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).after_end(MINUTE).then_once();
    for end in ["complete", "bury", "reap", "expire", "remove"] {
        let first = enqueue(&mut scene, 0, unique()).await.id();
        let lease = scene.claim().await.lease;
        let second = enqueue(&mut scene, 1, unique()).await;
        assert_eq!(second.admission(), Admission::Parked(first), "{end}");
        match end {
            "complete" => complete(&scene, &lease).await,
            "bury" => assert!(scene.queue.bury(&lease, "no").await.unwrap().is_settled()),
            "reap" => {
                scene.expire(first).await;
                assert_eq!(scene.queue.reap(Some(1)).await.unwrap().dead, [first]);
            }
            "expire" => {
                // Never claimed, as far as the row says.
                scene.queue.release(&lease).await.unwrap();
                scene.command(&format!("HSET @job:{first} attempts 0 expires 1")).await;
                let jobs = scene.claimer().claim(10).await.unwrap();
                assert_eq!((jobs.expired, jobs.jobs.len()), (1, 0));
                assert!(jobs.more, "the parked job is there to be claimed now");
            }
            _ => {
                scene.queue.release(&lease).await.unwrap();
                scene.queue.remove(first).await.unwrap();
            }
        }
        assert_eq!((holder(&mut scene).await, ttl(&mut scene).await), (Some(second.id().to_string()), -1), "{end}");
        let job = scene.claim().await;
        assert_eq!(job.lease.id(), second.id(), "{end}");
        complete(&scene, &job.lease).await;
        scene.command("DEL @de:k").await;
    }
}

#[tokio::test]
async fn a_parked_job_stays_while_the_one_in_front_is_tried_again() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    enqueue(&mut scene, 0, unique()).await;
    let lease = scene.claim().await.lease;
    let second = enqueue(&mut scene, 1, unique()).await.id();
    assert!(scene.queue.retry(&lease, Duration::ZERO, "no").await.unwrap().is_settled());
    scene.queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    assert!(scene.queue.snooze(&lease, Duration::ZERO).await.unwrap().is_settled());
    scene.queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    assert_eq!(scene.queue.state(second).await.unwrap(), Some(JobState::Parked));
    assert_eq!(enqueue(&mut scene, 2, unique()).await.admission(), Admission::Replaced(second));
    complete(&scene, &lease).await;
    assert_eq!(scene.claim().await.lease.id(), second);
}

#[tokio::test]
async fn a_parked_job_with_a_time_waits_for_that_too() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    enqueue(&mut scene, 0, unique()).await;
    let lease = scene.claim().await.lease;
    let before = scene.now().await;
    let second = enqueue_in(&mut scene, 1, unique(), MINUTE).await.id();
    let after = scene.now().await;
    complete(&scene, &lease).await;
    assert_eq!(scene.queue.state(second).await.unwrap(), Some(JobState::Scheduled));
    assert_after(scene.score("schedule", second).await, MINUTE, before, after);
    assert_eq!(scene.field(second, "due").await, None);
}

#[tokio::test]
async fn a_parked_job_that_is_removed_leaves_the_holder_alone() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    let first = enqueue(&mut scene, 0, unique()).await.id();
    let lease = scene.claim().await.lease;
    let before = scene.dump().await;
    let second = enqueue(&mut scene, 1, unique()).await.id();
    scene.queue.remove(second).await.unwrap();
    assert_eq!(before.diff(&scene.dump().await), Vec::<String>::new());
    assert_eq!(enqueue(&mut scene, 2, unique()).await.admission(), Admission::Parked(first));
    complete(&scene, &lease).await;
    assert_eq!(scene.claim().await.decode::<Work>().unwrap().n, 2);
}

#[tokio::test]
async fn a_lease_that_ran_out_counts_as_running_for_who_wants_to_come_after() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    let first = enqueue(&mut scene, 0, unique()).await.id();
    let late = scene.claim().await.lease;
    scene.expire(first).await;
    scene.queue.reap(None).await.unwrap();
    let second = enqueue(&mut scene, 1, unique()).await;
    assert_eq!(second.admission(), Admission::Parked(first), "its worker may still complete it, and began before this");
    complete(&scene, &late).await;
    assert_eq!(scene.claim().await.lease.id(), second.id());
}

#[tokio::test]
async fn a_parked_job_goes_on_after_a_holder_that_somebody_else_has_deleted() {
    let mut scene = scene("unique").await;
    let unique = || Unique::key(KEY).then_once();
    for by_enqueue in [false, true] {
        let first = enqueue(&mut scene, 0, unique()).await.id();
        scene.claim().await;
        let second = enqueue(&mut scene, 1, unique()).await.id();
        // The beat looks, finds the holder, and looks again later.
        scene.command(&format!("ZADD @parked 1 {second}")).await;
        scene.queue.promote().await.unwrap();
        assert!(scene.score("parked", second).await > 1.0);
        assert_eq!(scene.queue.state(second).await.unwrap(), Some(JobState::Parked));

        scene.command(&format!("DEL @job:{first} @de:k")).await;
        scene.command(&format!("ZREM @active {first}")).await;
        if by_enqueue {
            assert_eq!(enqueue(&mut scene, 2, unique()).await.admission(), Admission::Duplicate(second));
        } else {
            scene.command(&format!("ZADD @parked 1 {second}")).await;
            scene.command("DEL @marker").await;
            scene.queue.promote().await.unwrap();
            assert_eq!(scene.command("EXISTS @marker").await.int(), 1);
        }
        assert_eq!(scene.command("EXISTS @next:k").await.int(), 0, "nobody comes after it");
        assert_eq!(holder(&mut scene).await, Some(second.to_string()));
        let lease = scene.claim().await.lease;
        assert_eq!(lease.id(), second);
        complete(&scene, &lease).await;
        assert_eq!(holder(&mut scene).await, None);
    }
}

#[tokio::test]
async fn a_key_whose_job_is_gone_or_dead_is_free() {
    let mut scene = scene("unique").await;
    let first = enqueue(&mut scene, 0, Unique::key(KEY)).await.id();
    scene.command(&format!("DEL @job:{first}")).await;
    let second = enqueue(&mut scene, 1, Unique::key(KEY)).await;
    assert_eq!(second.admission(), Admission::Enqueued);
    // Another implementation has buried it, and knows nothing of keys.
    scene.command(&format!("ZREM @pending {}", second.id())).await;
    scene.command(&format!("ZADD @dead 0 {}", second.id())).await;
    scene.command(&format!("HSET @job:{} state dead", second.id())).await;
    assert!(is_new(&mut scene, Unique::key(KEY)).await);
}

#[tokio::test]
async fn a_key_that_others_let_expire_is_held_meanwhile() {
    let mut scene = scene("unique").await;
    scene.command("SET @de:k JOB0JZGkP9AMvv PX 60000").await;
    let ticket = enqueue(&mut scene, 0, Unique::key(KEY).replace_payload().then_once()).await;
    assert_eq!(ticket.admission(), Admission::Duplicate("JOB0JZGkP9AMvv".parse().unwrap()));
}

#[tokio::test]
async fn within_one_call_each_job_meets_the_one_before_it() {
    let mut scene = scene("unique").await;
    let name = scene.queue.name().to_string();
    let unique = || Unique::key(KEY).replace_payload().then_once();
    let drafts = (0..3).map(|n| Draft::of(Work { n }).unique(unique()).queue(&name));
    let tickets = scene.client.enqueue_many(drafts).await.unwrap();
    let first = tickets[0].id();
    let outcomes: Vec<_> = tickets.iter().map(Ticket::admission).collect();
    assert_eq!(outcomes, [Admission::Enqueued, Admission::Replaced(first), Admission::Replaced(first)]);
    let job = scene.claim().await;
    assert_eq!(job.decode::<Work>().unwrap().n, 2);
    let drafts = (3..6).map(|n| Draft::of(Work { n }).unique(unique()).queue(&name));
    let tickets = scene.client.enqueue_many(drafts).await.unwrap();
    let second = tickets[0].id();
    let outcomes: Vec<_> = tickets.iter().map(Ticket::admission).collect();
    assert_eq!(outcomes, [Admission::Parked(first), Admission::Replaced(second), Admission::Replaced(second)]);
}

#[tokio::test]
async fn the_same_enqueue_again_is_answered_the_same_and_writes_nothing() {
    let mut scene = scene("unique").await;
    let debounced = || Unique::key(KEY).debounce(MINUTE * 9).then_once();
    let first = enqueue_in(&mut scene, 0, debounced(), MINUTE).await.id();
    let id: JobId = "JOB0JZGkP9AMvv".parse().unwrap();
    let again =
        |scene: &Scene| scene.queue.enqueue(Work { n: 1 }).unique(debounced()).id(id).delay(MINUTE * 2).into_future();
    assert_eq!(again(&scene).await.unwrap().admission(), Admission::Replaced(first));
    enqueue_in(&mut scene, 2, debounced(), MINUTE).await;
    let call = again(&scene);
    assert_eq!(
        scene.unchanged(call).await.unwrap().admission(),
        Admission::Replaced(first),
        "a newer one came between"
    );

    scene.make_due(first).await;
    scene.queue.promote().await.unwrap();
    let lease = scene.claim().await.lease;
    let call = again(&scene);
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Replaced(first), "it runs");
    complete(&scene, &lease).await;
    let call = again(&scene);
    assert_eq!(scene.unchanged(call).await.unwrap().admission(), Admission::Replaced(first), "it has ended");
}

#[tokio::test]
async fn cancelled_purged_and_obliterated_jobs_leave_nothing_of_their_keys() {
    let mut scene = scene("unique").await;
    let queue = scene.queue.clone();
    let unique = || Unique::key(KEY).after_end(MINUTE).then_once();

    // The holder is cancelled by its worker's leave: who is parked goes on.
    enqueue(&mut scene, 0, unique()).await;
    let lease = scene.claim().await.lease;
    let second = enqueue(&mut scene, 1, unique()).await.id();
    assert_eq!(queue.cancel(lease.id()).await.unwrap(), emq::Cancelled::Asked);
    assert_eq!(queue.cancel_held(&lease).await.unwrap(), Settled::Accepted);
    assert_eq!(holder(&mut scene).await, Some(second.to_string()));
    assert_eq!(queue.cancel(second).await.unwrap(), emq::Cancelled::AtOnce);
    assert_eq!(holder(&mut scene).await, None);

    // One that is parked.
    enqueue(&mut scene, 2, unique()).await;
    let lease = scene.claim().await.lease;
    enqueue(&mut scene, 3, unique()).await;
    assert_eq!(queue.counts().await.unwrap().parked, 1);
    assert_eq!(queue.purge(Place::Parked).all().await.unwrap(), 1);
    assert_eq!(scene.command("EXISTS @next:k @parked").await.int(), 0);
    assert_eq!(holder(&mut scene).await, Some(lease.id().to_string()));

    // All of them.
    enqueue(&mut scene, 4, unique()).await;
    queue.obliterate().force().all().await.unwrap();
    assert_eq!(scene.dump().await.lines(), Vec::<String>::new());
}
