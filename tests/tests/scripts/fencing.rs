//! A token that doesn't hold the job writes nothing, whatever it is used for.

use emq::{CallError, Completion, Extended, Lease, Queue, Settled};

use crate::scene::{LEASE, MINUTE, Scene, scene};

/// Every verb that settles a job.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verb {
    Complete,
    Retry,
    Bury,
    Snooze,
    Release,
    CancelHeld,
}

const VERBS: [Verb; 6] = [Verb::Complete, Verb::Retry, Verb::Bury, Verb::Snooze, Verb::Release, Verb::CancelHeld];

impl Verb {
    async fn call(self, queue: &Queue, lease: Lease) -> Result<Settled, CallError> {
        match self {
            Self::Complete => queue.complete(&lease, Completion::of("result").unwrap()).await,
            Self::Retry => queue.retry(&lease, MINUTE, "error").await,
            Self::Bury => queue.bury(&lease, "error").await,
            Self::Snooze => queue.snooze(&lease, MINUTE).await,
            Self::Release => queue.release(&lease).await,
            Self::CancelHeld => queue.cancel_held(&lease).await,
        }
    }
}

/// Asserts that every verb is refused with this lease, and that nothing changes.
async fn assert_all_refused(scene: &mut Scene, lease: Lease, expected: Settled) {
    for verb in VERBS {
        let queue = scene.queue.clone();
        let settled = scene.unchanged(verb.call(&queue, lease)).await.unwrap();
        assert_eq!(settled, expected, "{verb:?} with token {}", lease.token());
    }
    let queue = scene.queue.clone();
    assert_eq!(scene.unchanged(queue.extend(&[lease], LEASE)).await.unwrap(), [Extended::Lost]);
}

#[tokio::test]
async fn a_token_that_was_not_handed_out_yet() {
    let mut scene = scene("fencing").await;
    let id = scene.enqueue().await;
    assert_all_refused(&mut scene, Lease::new(id, 0), Settled::Stale).await;
    assert_all_refused(&mut scene, Lease::new(id, 1), Settled::Stale).await;
    scene.claim().await;
    assert_all_refused(&mut scene, Lease::new(id, 2), Settled::Stale).await;
    assert_all_refused(&mut scene, Lease::new(id, u64::MAX), Settled::Stale).await;
}

#[tokio::test]
async fn a_token_of_an_earlier_claim() {
    let mut scene = scene("fencing").await;
    let old = scene.claimed().await;
    scene.queue.release(&old).await.unwrap();
    let new = scene.claim().await.lease;
    assert_all_refused(&mut scene, old, Settled::Stale).await;
    // And when the new claim has been settled, by a retry and by a burial.
    scene.queue.retry(&new, MINUTE, "no").await.unwrap();
    assert_all_refused(&mut scene, old, Settled::Stale).await;
    scene.make_due(old.id()).await;
    scene.queue.promote().await.unwrap();
    let third = scene.claim().await.lease;
    scene.queue.bury(&third, "no").await.unwrap();
    assert_all_refused(&mut scene, old, Settled::Stale).await;
}

#[tokio::test]
async fn a_token_of_a_job_that_was_reaped_and_claimed_by_another() {
    let mut scene = scene("fencing").await;
    let lost = scene.claimed().await;
    scene.expire(lost.id()).await;
    scene.queue.reap(None).await.unwrap();
    scene.claim().await;
    assert_all_refused(&mut scene, lost, Settled::Stale).await;
}

#[tokio::test]
async fn a_token_of_a_job_that_was_reaped_twice() {
    let mut scene = scene("fencing").await;
    let lost = scene.claimed().await;
    for _ in 0..2 {
        scene.expire(lost.id()).await;
        scene.queue.reap(None).await.unwrap();
        if scene.field(lost.id(), "reaped").await.as_deref() == Some("1") {
            scene.claim().await;
        }
    }
    assert_all_refused(&mut scene, lost, Settled::Stale).await;
}

#[tokio::test]
async fn a_token_of_a_job_that_was_buried_for_its_stalls() {
    let mut scene = scene("fencing").await;
    let lost = scene.claimed().await;
    scene.expire(lost.id()).await;
    assert_eq!(scene.queue.reap(Some(1)).await.unwrap().dead, [lost.id()]);
    assert_all_refused(&mut scene, lost, Settled::Stale).await;
    scene.queue.revive(lost.id()).await.unwrap();
    assert_all_refused(&mut scene, lost, Settled::Stale).await;
}

#[tokio::test]
async fn a_token_of_a_job_that_is_not_there() {
    let mut scene = scene("fencing").await;
    let unknown = Lease::new("JOB0JZGkP9AMvv".parse().unwrap(), 1);
    assert_all_refused(&mut scene, unknown, Settled::Gone).await;
}

#[tokio::test]
async fn a_token_that_has_settled_its_job() {
    for first in VERBS {
        let mut scene = scene("fencing").await;
        let lease = scene.claimed().await;
        let queue = scene.queue.clone();
        assert_eq!(first.call(&queue, lease).await.unwrap(), Settled::Accepted, "{first:?}");
        for second in VERBS {
            let settled = scene.unchanged(second.call(&queue, lease)).await.unwrap();
            let expected = match (first, second) {
                (first, second) if first == second => Settled::Repeated,
                (Verb::Complete, _) => Settled::Gone,
                (Verb::CancelHeld, _) => Settled::Cancelled,
                _ => Settled::Stale,
            };
            assert_eq!(settled, expected, "{second:?} after {first:?}");
        }
    }
}

#[tokio::test]
async fn a_token_that_has_settled_its_job_and_the_job_has_moved_on() {
    for first in [Verb::Retry, Verb::Snooze, Verb::Release, Verb::Bury] {
        let mut scene = scene("fencing").await;
        let lease = scene.claimed().await;
        let queue = scene.queue.clone();
        first.call(&queue, lease).await.unwrap();
        match first {
            Verb::Bury => assert_eq!(queue.revive(lease.id()).await.unwrap(), emq::Revived::Revived),
            Verb::Release => {}
            _ => {
                scene.make_due(lease.id()).await;
                assert_eq!(queue.promote().await.unwrap().count, 1);
                // It waits, and the repeat is still of the call that put it on the schedule.
                assert_eq!(scene.unchanged(first.call(&queue, lease)).await.unwrap(), Settled::Repeated);
            }
        }
        let next = scene.claim().await.lease;
        assert_all_refused(&mut scene, lease, Settled::Stale).await;
        assert_eq!(queue.complete(&next, Completion::empty()).await.unwrap(), Settled::Accepted);
    }
}

#[tokio::test]
async fn a_lease_that_ran_out_holds_until_the_job_is_claimed_again() {
    for reaped in [false, true] {
        for verb in VERBS {
            let mut scene = scene("fencing").await;
            let lease = scene.claimed().await;
            scene.expire(lease.id()).await;
            if reaped {
                scene.queue.reap(None).await.unwrap();
            }
            let queue = scene.queue.clone();
            assert_eq!(verb.call(&queue, lease).await.unwrap(), Settled::Accepted, "{verb:?}, reaped: {reaped}");
            let again = scene.unchanged(verb.call(&queue, lease)).await.unwrap();
            assert_eq!(again, Settled::Repeated, "{verb:?}, reaped: {reaped}");
            let counts = queue.counts().await.unwrap();
            let places = counts.unfinished() + counts.dead + counts.remembered;
            assert_eq!(places, 1, "{verb:?} leaves the job in one place: {counts:?}");
        }
    }
}
