//! A worker claims what it has room for, in batches, from all its queues in turn.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
    mpsc,
};

use emq::Completion;
use support::{
    Proxy, Server,
    proxy::{Command, When},
};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimitLayer;

use crate::errand::{Does, Errand, Other, Place, hangs, is_claim, is_done, ms, start, telling, tells};

/// Counts how many run at once.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Crowd {
    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// A handler that stays in the crowd for a moment.
    fn handler(&self) -> Does {
        self.handler_that_takes(|n| 1 + n % 7)
    }

    fn handler_that_takes(&self, time: fn(u64) -> u64) -> Does {
        self.handler_that_does(move |n| tokio::time::sleep(ms(time(n))))
    }

    /// One that ends when the gate lets it pass.
    fn handler_that_waits(&self, gate: Arc<Semaphore>) -> Does {
        self.handler_that_does(move |_| {
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        })
    }

    fn handler_that_does<F>(&self, what: impl Fn(u64) -> F + Send + Sync + 'static) -> Does
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let crowd = self.clone();
        Does::new(move |n, _| {
            let (crowd, done) = (crowd.clone(), what(n));
            async move {
                let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
                crowd.most.fetch_max(now, Ordering::SeqCst);
                done.await;
                crowd.now.fetch_sub(1, Ordering::SeqCst);
                Ok(Completion::empty())
            }
        })
    }
}

#[tokio::test]
async fn a_worker_has_as_many_jobs_in_hand_as_it_may_and_never_more() {
    let place = Place::shared("crowd").await;
    let crowd = Crowd::default();
    place.enqueue(300).await;
    let worker = start(place.worker(crowd.handler()).concurrency(7));
    place.completed(300).await;
    assert_eq!(crowd.most(), 7);
    assert_eq!(worker.stop().await.completed, 300);
}

#[tokio::test]
async fn what_a_worker_has_no_room_for_is_left_to_others() {
    let place = Place::shared("room").await;
    let (tell, mut told) = telling();
    place.enqueue(20).await;
    let worker = start(place.worker(hangs(&tell)).concurrency(3).grace(ms(0)));
    for _ in 0..3 {
        told.next().await;
    }
    let (tell, mut told) = telling();
    let other = start(place.worker(tells(&tell)));
    for _ in 0..17 {
        told.next().await;
    }
    place.completed(17).await;
    let counts = place.queue.counts().await.unwrap();
    assert_eq!((counts.active, counts.pending), (3, 0));
    assert_eq!(worker.stop().await.claimed, 3);
    // Given back, they are the other's.
    place.completed(20).await;
    other.stop().await;
}

#[tokio::test]
async fn jobs_are_claimed_in_batches() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "batches").await;
    let claims = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&claims);
    let counted = move |command: &Command| {
        if is_claim(command) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        false
    };
    proxy.cut_reply(counted, When::Once);
    place.enqueue(2_000).await;
    let worker = start(place.worker(is_done()).concurrency(200));
    place.completed(2_000).await;
    let claims = claims.load(Ordering::SeqCst);
    assert!((10..=400).contains(&claims), "{claims} claims for 2000 jobs");
    worker.stop().await;
}

/// The server finds the next call when it is done with one, and doesn't wait for the worker.
#[tokio::test]
async fn a_large_call_is_sent_before_the_one_before_it_is_answered() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "ahead").await;
    let (tell, mut told) = telling();
    let passed = move |command: &Command| {
        if is_claim(command) {
            tell.tell(());
        }
        false
    };
    let gate = Arc::new(Semaphore::new(0));
    let crowd = Crowd::default();
    let waits = crowd.handler_that_waits(Arc::clone(&gate));
    place.enqueue(100).await;
    let worker = start(place.worker(waits).concurrency(8));
    place.until(async || crowd.now.load(Ordering::SeqCst) == 8).await;
    proxy.cut_reply(passed, When::Once);
    server.freeze();
    gate.add_permits(1);
    told.next().await;
    gate.add_permits(7);
    told.next().await;
    server.thaw();
    gate.add_permits(92);
    place.completed(100).await;
    assert_eq!(crowd.most(), 8, "a job is claimed in the place of one that has run");
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.stale, stats.released), (100, 0, 0));
}

/// Whichever thread that is, and whatever else was about to run on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_blocks_a_thread_holds_up_no_completion_of_others() {
    let place = Place::shared("thread").await;
    let (go_on, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let blocks = Does::new(move |n, _| {
        if n == 0 {
            blocked.lock().unwrap().recv().unwrap();
        }
        std::future::ready(Ok(Completion::empty()))
    });
    let worker = start(place.worker(blocks).concurrency(64));
    for round in 0..30 {
        place.enqueue(20).await;
        place.completed(round * 20 + 19).await;
        go_on.send(()).unwrap();
        place.completed(round * 20 + 20).await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_queue_has_no_more_jobs_in_hand_than_its_own_limit_and_others_go_on() {
    let (narrow, wide) = (Place::shared("narrow").await, Place::shared("wide").await);
    let crowd = Crowd::default();
    let in_narrow = crowd.clone();
    let narrow_name = narrow.name().to_owned();
    let does = Does::new(move |n, ctx| {
        let crowd = if ctx.queue() == narrow_name { in_narrow.clone() } else { Crowd::default() };
        async move {
            let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
            crowd.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(ms(1 + n % 7)).await;
            crowd.now.fetch_sub(1, Ordering::SeqCst);
            Ok(Completion::empty())
        }
    });
    narrow.enqueue(100).await;
    wide.enqueue(300).await;
    let worker = start(narrow.worker(does).queue(wide.name()).concurrency(16).queue_concurrency(narrow.name(), 2));
    narrow.completed(100).await;
    wide.completed(300).await;
    assert_eq!(crowd.most(), 2);
    worker.stop().await;
}

#[tokio::test]
async fn queues_are_served_in_turn() {
    let first = Place::shared("turn").await;
    let places = [first.another("turn"), first.another("turn"), first];
    for place in &places {
        place.enqueue(30).await;
    }
    let (tell, mut told) = telling();
    let does = Does::new(move |_, ctx| {
        tell.tell(ctx.queue().to_owned());
        std::future::ready(Ok(Completion::empty()))
    });
    let [one, two, three] = &places;
    let worker = start(one.worker(does).queue(two.name()).queue(three.name()).concurrency(1));
    let mut order = Vec::new();
    for _ in 0..30 {
        order.push(told.next().await);
    }
    for place in &places {
        let served = order.iter().filter(|queue| *queue == place.name()).count();
        assert!((8..=12).contains(&served), "{served} of the first 30 are of {}: {order:?}", place.name());
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_queue_that_cant_be_claimed_from_doesnt_slow_the_others() {
    let place = Place::shared("healthy").await;
    let broken = place.another("broken");
    broken.raw().await.command(&["SET", &broken.key("pending"), "not a set"]).await;
    place.enqueue(100).await;
    let (tell, mut told) = telling();
    let worker = start(broken.worker(tells(&tell)).queue(place.name()).concurrency(1));
    let start = std::time::Instant::now();
    for _ in 0..100 {
        told.next().await;
    }
    // A pause of the whole worker for each failed claim would come to 50 s.
    assert!(start.elapsed() < ms(10_000), "{:?}", start.elapsed());
    // Once mended, it is served again by itself.
    broken.raw().await.command(&["DEL", &broken.key("pending")]).await;
    broken.enqueue(1).await;
    told.next().await;
    worker.stop().await;
}

#[tokio::test]
async fn what_a_layer_has_no_room_for_goes_to_other_workers() {
    let place = Place::shared("layer").await;
    place.enqueue(20).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(hangs(&tell)).layer(ConcurrencyLimitLayer::new(2)).concurrency(16).grace(ms(0)));
    for _ in 0..2 {
        told.next().await;
    }
    let (tell, mut told) = telling();
    let other = start(place.worker(tells(&tell)));
    for _ in 0..18 {
        told.next().await;
    }
    place.completed(18).await;
    assert_eq!(worker.stats().in_hand, 2);
    // A stack that isn't ready doesn't claim.
    place.enqueue(20).await;
    for _ in 0..20 {
        told.next().await;
    }
    place.completed(38).await;
    let stats = worker.stats();
    assert_eq!(stats.claimed - stats.released, 2);
    worker.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_layer_of_one_job_holds_up_no_other_job() {
    let place = Place::shared("job-layer").await;
    let (tell, mut told) = telling();
    let worker = emq::Worker::builder(&place.client)
        .state(hangs(&tell))
        .register_with::<Other>(ConcurrencyLimitLayer::new(1))
        .register::<Errand>()
        .queue(place.name())
        .concurrency(8)
        .grace(ms(0));
    let worker = start(worker);
    for n in 0..3 {
        place.queue.enqueue(Other { n }).await.unwrap();
    }
    assert_eq!(told.next().await, 0);
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, 7);
    assert!(told.rest().is_empty());
    worker.stop().await;
}

#[tokio::test]
async fn claims_whose_replies_are_lost_lose_no_job_and_run_none_twice() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "lost").await;
    let second = place.another("lost");
    place.enqueue(200).await;
    second.enqueue(200).await;
    proxy.cut_reply(is_claim, When::Every(3));
    let crowd = Crowd::default();
    let worker = start(place.worker(crowd.handler()).queue(second.name()).concurrency(9));
    place.completed(200).await;
    second.completed(200).await;
    assert!(proxy.cuts() > 5, "{} cuts", proxy.cuts());
    assert!(crowd.most() <= 9, "{} at once", crowd.most());
    proxy.clear();
    let stats = worker.stop().await;
    assert_eq!(stats.completed, 400);
    assert_eq!((stats.lost, stats.stale, stats.unsettled), (0, 0, 0));
}

#[tokio::test]
async fn what_a_lost_reply_had_brought_isnt_begun_while_there_is_no_room_for_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let (first, second) = (Place::on(&server, "first").await, Place::on(&server, "second").await);
    // No repeat further down: the other queue is served before the claim is made again.
    let client = emq::Client::builder(proxy.url()).retry_for(ms(0)).connect().await.unwrap();
    let crowd = Crowd::default();
    let builder = emq::Worker::builder(&client).state(crowd.handler_that_takes(|n| 500 * (n + 1))).register::<Errand>();
    let worker = start(builder.queue(first.name()).queue(second.name()).concurrency(3));
    first.waited_for(1).await;
    let claims_first = first.key("claims");
    proxy.cut_reply(move |command| command.has(&claims_first), When::Once);
    first.enqueue(3).await;
    proxy.wait_cuts(1).await;
    // Connected again.
    second.until(async || client.queue(second.name()).unwrap().counts().await.is_ok()).await;
    second.enqueue(3).await;
    first.completed(3).await;
    second.completed(3).await;
    assert_eq!(crowd.most(), 3);
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.stale), (6, 0, 0));
}

#[tokio::test]
async fn ids_without_a_job_are_dropped_and_counted() {
    let place = Place::shared("orphans").await;
    let mut raw = place.raw().await;
    raw.command(&["ZADD", &place.key("pending"), "0", "JOB00000000001", "0", "JOB00000000002"]).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, 7);
    place.completed(1).await;
    let stats = worker.stop().await;
    assert_eq!((stats.dropped, stats.claimed), (2, 1));
}
