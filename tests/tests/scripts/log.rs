use emq::{Completion, Lease, MAX_LOG_LINES};

use crate::scene::scene;

#[tokio::test]
async fn lines_are_kept_in_order_and_go_with_the_job() {
    let mut scene = scene("log").await;
    let ctx = scene.context().await;
    let (told, changes) = scene.changes(ctx.log("one")).await;
    told.unwrap();
    assert_eq!(changes, ["+ job:J1 hash logged = 1 1", "+ job:J1:logs list [0] = one"]);
    ctx.log("two\r\n\0").await.unwrap();
    let queue = scene.queue.clone();
    assert_eq!(queue.logs(ctx.id()).await.unwrap(), ["one", "two\r\n\0"]);
    let lease = Lease::new(ctx.id(), ctx.fence());
    queue.bury(&lease, "no").await.unwrap();
    assert_eq!(queue.logs(ctx.id()).await.unwrap().len(), 2, "a dead letter has its log");
    queue.revive(ctx.id()).await.unwrap();
    let lease = scene.claim().await.lease;
    queue.complete(&lease, Completion::empty()).await.unwrap();
    assert!(queue.logs(ctx.id()).await.unwrap().is_empty());
    assert!(!scene.dump().await.lines().iter().any(|line| line.contains(":logs")));
}

#[tokio::test]
async fn lines_of_a_first_run_go_when_it_completes() {
    let mut scene = scene("log").await;
    let ctx = scene.context().await;
    ctx.log("one").await.unwrap();
    scene.queue.complete(&Lease::new(ctx.id(), ctx.fence()), Completion::empty()).await.unwrap();
    assert!(!scene.dump().await.lines().iter().any(|line| line.contains(":logs")));
}

#[tokio::test]
async fn lines_that_another_implementation_has_kept_of_an_earlier_run_go_too() {
    let mut scene = scene("log").await;
    let lease = scene.claimed().await;
    scene.command(&format!("RPUSH @job:{}:logs one", lease.id())).await;
    scene.queue.release(&lease).await.unwrap();
    let lease = scene.claim().await.lease;
    scene.queue.complete(&lease, Completion::empty()).await.unwrap();
    assert!(!scene.dump().await.lines().iter().any(|line| line.contains(":logs")));
}

#[tokio::test]
async fn the_newest_lines_are_kept_and_of_each_no_more_than_is_shown() {
    let mut scene = scene("log").await;
    let ctx = scene.context().await;
    for n in 0..MAX_LOG_LINES + 7 {
        ctx.log(n.to_string()).await.unwrap();
    }
    ctx.log("é".repeat(1 << 20)).await.unwrap();
    let lines = scene.queue.logs(ctx.id()).await.unwrap();
    assert_eq!((lines.len(), lines[0].as_str()), (MAX_LOG_LINES, "8"));
    assert!(lines.last().unwrap().len() <= 8 * 1024);
}
