use emq::{Extended, Lease};

use crate::scene::{MINUTE, assert_after, scene};

#[tokio::test]
async fn moves_the_end_of_the_lease_and_nothing_else() {
    let mut scene = scene("extend").await;
    let lease = scene.claimed().await;
    scene.command(&format!("ZADD @active XX 5 {}", lease.id())).await;
    let queue = scene.queue.clone();
    let before = scene.now().await;
    let (extended, changes) = scene.changes(queue.extend(&[lease], MINUTE)).await;
    let after = scene.now().await;
    assert_eq!(extended.unwrap(), [Extended::Renewed]);
    assert_eq!(changes, ["~ active zset J1 @ T (was 5)"]);
    assert_after(scene.score("active", lease.id()).await, MINUTE, before, after);
}

#[tokio::test]
async fn answers_each_lease_by_itself_in_order() {
    let mut scene = scene("extend").await;
    let held = scene.claimed().await;
    let released = scene.claimed().await;
    scene.queue.release(&released).await.unwrap();
    let unknown = Lease::new("JOB0JZGkP9AMvv".parse().unwrap(), 1);
    let stale = Lease::new(held.id(), held.token() + 1);
    let extended = scene.queue.extend(&[released, held, unknown, stale, held], MINUTE).await.unwrap();
    use Extended::{Lost, Renewed};
    assert_eq!(extended, [Lost, Renewed, Lost, Lost, Renewed]);
}

#[tokio::test]
async fn a_job_that_is_not_active_is_put_nowhere() {
    let mut scene = scene("extend").await;
    let lease = scene.claimed().await;
    let queue = scene.queue.clone();
    queue.retry(&lease, MINUTE, "no").await.unwrap();
    assert_eq!(scene.unchanged(queue.extend(&[lease], MINUTE)).await.unwrap(), [Extended::Lost]);

    let lease = scene.claimed().await;
    scene.expire(lease.id()).await;
    queue.reap(None).await.unwrap();
    assert_eq!(scene.unchanged(queue.extend(&[lease], MINUTE)).await.unwrap(), [Extended::Lost], "reaped");
}

#[tokio::test]
async fn no_leases_are_no_call() {
    let scene = scene("extend").await;
    assert_eq!(scene.queue.extend(&[], MINUTE).await.unwrap(), []);
}
