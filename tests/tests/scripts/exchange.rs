use emq::JobState;

use crate::scene::{Scene, scene, script};

/// Completes a job, and claims the next, as a worker does in one call.
async fn exchange(scene: &mut Scene, lease: &emq::Lease) -> support::Reply {
    let keys = "@job: @pending @active @schedule @dead @done @marker @meta @claims @metrics:completed @metrics:failed \
                @events @";
    let prefix = format!("emq:{{{}}}:", scene.queue.name());
    let mut args = vec!["EVAL".to_owned(), script("exchange"), "13".to_owned()];
    args.extend(keys.split(' ').map(|key| key.replace('@', &prefix)));
    args.extend(["10", "30000", "w", "1"].map(str::to_owned));
    args.extend([
        lease.token().to_string(),
        "60000".to_owned(),
        String::new(),
        String::new(),
        "1".to_owned(),
        lease.id().to_string(),
    ]);
    scene.raw.command(&args).await
}

#[tokio::test]
async fn one_call_completes_and_claims() {
    let mut scene = scene("exchange").await;
    let done = scene.claimed().await;
    let next = scene.enqueue().await;
    let reply = exchange(&mut scene, &done).await;
    assert_eq!(reply.items()[0].text(), "OK");
    assert_eq!(reply.items()[6].items()[0].text(), next.as_str());
    assert_eq!(scene.queue.state(done.id()).await.unwrap(), Some(JobState::Finished));
}

#[tokio::test]
async fn a_claim_that_raises_hides_nothing_of_what_was_completed() {
    let mut scene = scene("exchange").await;
    let done = scene.claimed().await;
    scene.enqueue().await;
    // The claim alone reads it.
    scene.command("SET @claims text").await;
    let reply = exchange(&mut scene, &done).await;
    assert!(!reply.is_error(), "{reply}");
    assert_eq!(reply.items()[0].text(), "OK");
    assert_eq!(reply.items()[6].items().len(), 0, "no job: {reply}");
    assert_eq!(reply.items()[2].int(), 1, "more may be left, so that the worker looks again");
    assert_eq!(scene.queue.state(done.id()).await.unwrap(), Some(JobState::Finished));
    assert_eq!(scene.queue.counts().await.unwrap().pending, 1);
}
