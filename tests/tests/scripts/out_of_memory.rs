//! A server that is out of memory refuses new jobs whole, and lets the ones it has get done.

use emq::{
    CallError, Client, Completion, Draft, EnqueueError, Extended, Keep, RecurringError, Removed, Revived, Schedule,
    Settled,
};
use support::Server;

use crate::scene::{LEASE, MINUTE, Scene, Work};

/// A server with its memory used up, and a queue with jobs in every place.
async fn full(server: &Server) -> Scene {
    Scene::on(server, "oom").await
}

#[tokio::test]
async fn work_gets_done_and_no_more_comes_in() {
    let server = Server::start().await;
    let mut scene = full(&server).await;
    let queue = scene.queue.clone();
    let dead = scene.dead().await;
    let due = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    let mut leases = Vec::new();
    for _ in 0..7 {
        leases.push(scene.claimed().await);
    }
    let pending = scene.enqueue().await;
    let removed = scene.enqueue_as(Draft::of(Work { n: 0 }).delay(MINUTE)).await;
    scene.make_due(due).await;
    scene.expire(leases[6].id()).await;
    scene.command("CONFIG SET maxmemory 1").await;

    let call = queue.enqueue(Work { n: 9 }).unique("k").into_future();
    let error = scene.unchanged(call).await.unwrap_err();
    assert!(
        matches!(&error, EnqueueError::Call { source: CallError::Refused { code, .. }, .. } if code == "OOM"),
        "{error}"
    );
    let many: Vec<_> = (0..10).map(|n| Draft::of(Work { n }).queue(queue.name().as_str())).collect();
    let call = scene.client.enqueue_many(many).into_future();
    let error = scene.unchanged(call).await.unwrap_err();
    assert_eq!(error.failed, 10);

    assert_eq!(queue.extend(&leases[..1], LEASE).await.unwrap(), [Extended::Renewed]);
    assert_eq!(queue.complete(&leases[0], Completion::of("result").unwrap()).await.unwrap(), Settled::Accepted);
    assert_eq!(queue.retry(&leases[1], MINUTE, "no").await.unwrap(), Settled::Accepted);
    assert_eq!(queue.bury(&leases[2], "no").await.unwrap(), Settled::Accepted);
    assert_eq!(queue.snooze(&leases[3], MINUTE).await.unwrap(), Settled::Accepted);
    assert_eq!(queue.release(&leases[4]).await.unwrap(), Settled::Accepted);
    assert_eq!(queue.reap(Some(3)).await.unwrap().recovered, [leases[6].id()]);
    assert_eq!(queue.promote().await.unwrap().count, 1);
    assert_eq!(queue.revive(dead).await.unwrap(), Revived::Revived);
    assert_eq!(queue.remove(removed).await.unwrap(), Removed::Removed);
    assert_eq!(queue.trim(Keep { count: 0, ..Keep::default() }).await.unwrap().dead, 1);
    let mut claimer = scene.claimer();
    let batch = claimer.claim(2).await.unwrap();
    assert_eq!((batch.jobs.len(), batch.more), (2, true));
    assert!(batch.jobs.iter().any(|job| [pending, dead, due].contains(&job.lease.id())));
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.active, counts.scheduled, counts.dead, counts.completed), (3, 2, 0, 1));
    assert_eq!(counts.pending, 3);

    scene.command("CONFIG SET maxmemory 0").await;
    assert!(!queue.enqueue(Work { n: 9 }).unique("k").await.unwrap().is_duplicate());
}

#[tokio::test]
async fn a_recurring_job_can_be_stopped_and_enqueues_nothing() {
    let server = Server::start().await;
    let mut scene = full(&server).await;
    let recurring = scene.queue.recurring();
    for name in ["a", "b"] {
        recurring.upsert(name, Schedule::every(MINUTE), Work { n: 1 }).await.unwrap();
    }
    scene.command("CONFIG SET maxmemory 1").await;
    let refused = scene.unchanged(recurring.run_now("a")).await.unwrap_err();
    assert!(matches!(&refused, RecurringError::Call(CallError::Refused { code, .. }) if code == "OOM"), "{refused}");
    assert!(recurring.pause("a").await.unwrap());
    assert!(recurring.resume("a").await.unwrap());
    assert!(recurring.remove("b").await.unwrap());
}

#[tokio::test]
async fn a_worker_that_connects_then_can_still_drain() {
    let server = Server::start().await;
    let mut scene = full(&server).await;
    scene.enqueue().await;
    scene.command("CONFIG SET maxmemory 1").await;
    // It leases no node number, which only matters for what it enqueues.
    let client = Client::connect(server.url()).await.unwrap();
    let queue = client.queue(scene.queue.name().as_str()).unwrap();
    let batch = queue.claimer("drain").claim(10).await.unwrap();
    assert_eq!(queue.complete(&batch.jobs[0].lease, Completion::empty()).await.unwrap(), Settled::Accepted);

    // Once there is room, it enqueues with a nonce that tells its ids from another client's.
    scene.command("CONFIG SET maxmemory 0").await;
    let id = queue.enqueue(Work { n: 1 }).await.unwrap().id();
    assert_eq!(scene.field(id, "nonce").await.map(|nonce| nonce.len()), Some(16));
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_answered_again() {
    let server = Server::start().await;
    let mut scene = full(&server).await;
    let mut claimer = scene.claimer();
    // From here on the server knows the script, so that a claim is one message.
    claimer.claim(1).await.unwrap();
    let id = scene.enqueue().await;
    {
        let mut claim = std::pin::pin!(claimer.claim(1));
        tokio::select! {
            biased;
            _ = &mut claim => panic!("it was answered before it was sent"),
            () = std::future::ready(()) => {}
        }
    }
    // On the same connection, so the claim is carried out before this is answered.
    assert_eq!(scene.queue.counts().await.unwrap().active, 1);
    scene.command("CONFIG SET maxmemory 1").await;
    let batch = claimer.claim(1).await.unwrap();
    assert_eq!(&batch.jobs[0].lease, &emq::Lease::new(id, 1));
}
