use std::time::Duration;

use emq::Draft;

use crate::scene::{LEASE, MINUTE, Work, assert_after, scene};

#[tokio::test]
async fn moves_a_job_to_the_active_and_answers_all_of_it() {
    let mut scene = scene("claim").await;
    let draft = Draft::of(Work { n: 7 }).max_attempts(4).header("tenant", "north");
    let id = scene.enqueue_as(draft).await;
    let mut claimer = scene.claimer();
    let before = scene.now().await;
    let (batch, changes) = scene.changes(claimer.claim(10)).await;
    let after = scene.now().await;
    assert_eq!(
        changes,
        [
            "+ active zset J1 @ T",
            "+ claims hash W = 1|T|J1",
            "~ job:J1 hash attempts = 1 (was 0)",
            "~ job:J1 hash state = active (was pending)",
            "+ job:J1 hash worker = W",
            "- pending zset J1 @ 0",
        ]
    );
    assert_after(scene.score("active", id).await, LEASE, before, after);

    let batch = batch.unwrap();
    assert!(!batch.more && batch.dropped == 0);
    let next = batch.next_event.unwrap();
    assert!(next <= LEASE && next > LEASE / 2, "{next:?}");
    let [job] = batch.jobs.as_slice() else { panic!("{batch:?}") };
    assert_eq!((job.lease.id(), job.lease.token()), (id, 1));
    assert_eq!(job.decode::<Work>().unwrap(), Work { n: 7 });
    assert_eq!(job.name.as_deref(), Some("work"));
    assert_eq!((job.failures, job.stalled, job.max_attempts), (0, 0, Some(4)));
    assert_eq!(job.headers["tenant"], "north");
}

#[tokio::test]
async fn takes_no_more_than_it_is_asked_for_and_leaves_the_marker_set() {
    let mut scene = scene("claim").await;
    for _ in 0..3 {
        scene.enqueue().await;
    }
    scene.command("DEL @marker").await;
    let mut claimer = scene.claimer();
    let (batch, changes) = scene.changes(claimer.claim(2)).await;
    let batch = batch.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (2, true));
    assert!(changes.contains(&"+ marker zset 0 @ 0".into()), "{changes:?}");
    scene.command("DEL @marker").await;
    let batch = claimer.claim(2).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (1, false));
    assert_eq!(scene.command("EXISTS @marker").await.int(), 0, "nothing is left to wake for");
}

#[tokio::test]
async fn an_empty_queue_answers_when_to_look_again_and_writes_nothing() {
    let mut scene = scene("claim").await;
    let mut claimer = scene.claimer();
    let batch = scene.unchanged(claimer.claim(10)).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more, batch.next_event), (0, false, None));

    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    scene.command("DEL @marker").await;
    let batch = scene.unchanged(claimer.claim(10)).await.unwrap();
    let next = batch.next_event.unwrap();
    assert!(next <= MINUTE && next > MINUTE / 2, "{next:?}");

    scene.make_due(id).await;
    let batch = scene.unchanged(claimer.claim(10)).await.unwrap();
    assert_eq!(batch.next_event, Some(Duration::ZERO), "it has fallen due");
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing_and_sets_no_marker() {
    let mut scene = scene("claim").await;
    scene.enqueue().await;
    scene.command("DEL @marker").await;
    scene.command("HSET @meta paused 1").await;
    let mut claimer = scene.claimer();
    let batch = scene.unchanged(claimer.claim(10)).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (0, false));
    scene.command("HDEL @meta paused").await;
    assert_eq!(claimer.claim(10).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn a_claim_forgets_how_the_job_was_reaped_or_settled_before() {
    let mut scene = scene("claim").await;
    let lease = scene.claimed().await;
    scene.queue.release(&lease).await.unwrap();
    assert_eq!(scene.field(lease.id(), "settled").await.as_deref(), Some("release 1"));
    let second = scene.claim().await.lease;
    assert_eq!(second.token(), 2);
    assert_eq!(scene.field(lease.id(), "settled").await, None);
    scene.expire(lease.id()).await;
    scene.queue.reap(None).await.unwrap();
    assert_eq!(scene.field(lease.id(), "reaped").await.as_deref(), Some("2"));
    assert_eq!(scene.claim().await.lease.token(), 3);
    assert_eq!(scene.field(lease.id(), "reaped").await, None);
}

/// A list is searched from its head for each job that comes or goes.
#[tokio::test]
async fn many_jobs_in_hand_arent_kept_as_a_list() {
    let mut scene = scene("claim").await;
    for _ in 0..17 {
        scene.enqueue().await;
    }
    let batch = scene.claimer().claim(17).await.unwrap();
    assert_eq!(batch.jobs.len(), 17);
    assert_eq!(scene.command("OBJECT ENCODING @active").await.text(), "skiplist");
    assert_eq!(scene.command("ZCARD @active").await.int(), 17, "and there is nothing among them");
}

#[tokio::test]
async fn a_number_of_none_or_too_many_is_taken_for_the_nearest_that_can_be() {
    let mut scene = scene("claim").await;
    scene.enqueue().await;
    let mut claimer = scene.claimer();
    assert_eq!(claimer.claim(0).await.unwrap().jobs.len(), 1);
    assert_eq!(claimer.claim(usize::MAX).await.unwrap().jobs.len(), 0);
}

#[tokio::test]
async fn a_worker_that_leaves_is_forgotten() {
    let mut scene = scene("claim").await;
    scene.enqueue().await;
    let mut claimer = scene.claimer();
    claimer.claim(1).await.unwrap();
    let (left, changes) = scene.changes(claimer.leave()).await;
    left.unwrap();
    assert_eq!(changes, ["- claims hash W = 1|T|J1"]);
}

#[tokio::test]
async fn what_has_expired_between_others_is_made_up_for_and_not_doubly() {
    let mut scene = scene("claim").await;
    let queue = scene.queue.clone();
    for n in 0..6 {
        let draft = Draft::of(Work { n });
        let id = scene.enqueue_as(if n == 1 { draft.expires_in(MINUTE) } else { draft }).await;
        if n == 1 {
            scene.command(&format!("HSET @job:{id} expires 1")).await;
        }
    }
    let batch = scene.claimer().claim(3).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.expired, batch.more), (3, 1, true));
    assert_eq!(queue.counts().await.unwrap().pending, 2);
}

#[tokio::test]
async fn a_job_that_has_expired_stays_where_it_is_as_long_as_it_cant_be_buried() {
    let mut scene = scene("claim").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).expires_in(MINUTE)).await;
    scene.command(&format!("HSET @job:{id} expires 1")).await;
    scene.command("SET @dead text").await;
    let mut claimer = scene.claimer();
    assert!(scene.unchanged(claimer.claim(1)).await.is_err());
    scene.command("DEL @dead").await;
    let batch = claimer.claim(1).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.expired), (0, 1));
}
