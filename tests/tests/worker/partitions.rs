//! One logical queue over many: what is enqueued goes to one partition, and every look and every hand reaches all.

use std::collections::BTreeSet;

use emq::{
    Admission, Cancelled, Client, Completion, Draft, Event, JobError, JobResult, JobState, LimitError, Partitioned,
    Place as In, PurgeError, Rate, Removed, Revived, Schedule, Worker, WorkerBuilder,
};
use support::{Dump, Raw, Server, queue_name};

use crate::errand::{Does, Errand, begins_at_once, hangs, is_done, ms, start, telling, tells};

/// A queue of so many partitions, of a client of its own.
async fn divided(server: &Server, name: &str, partitions: u16) -> (Client, Partitioned) {
    let client = Client::builder(server.url()).partitioned(name, partitions).connect().await.unwrap();
    let queue = client.partitioned(name).unwrap();
    (client, queue)
}

async fn shared(label: &str, partitions: u16) -> (Client, Partitioned) {
    divided(support::server().await, &queue_name(label), partitions).await
}

fn worker(client: &Client, queue: &Partitioned, does: Does) -> WorkerBuilder<Does> {
    Worker::builder(client).state(does).register::<Errand>().queue(queue.name().as_str()).grace(ms(5_000))
}

/// How many jobs wait in each partition.
async fn waiting(queue: &Partitioned) -> Vec<u64> {
    let mut waiting = Vec::new();
    for partition in queue.partitions().await.unwrap() {
        waiting.push(partition.counts().await.unwrap().pending);
    }
    waiting
}

/// Waits until this many jobs are done.
async fn completed(queue: &Partitioned, count: u64) {
    while queue.counts().await.unwrap().completed < count {
        tokio::time::sleep(ms(5)).await;
    }
}

#[tokio::test]
async fn jobs_are_spread_over_all_partitions_and_one_worker_runs_them_all() {
    let (client, queue) = shared("spread", 8).await;
    let tickets = queue.enqueue_many((0..400).map(|n| Errand { n })).await.unwrap();
    assert!(tickets.iter().all(|ticket| ticket.admission() == Admission::Enqueued));
    let spread = waiting(&queue).await;
    assert_eq!(spread.iter().sum::<u64>(), 400);
    assert!(spread.len() == 8 && spread.iter().all(|count| *count > 10), "{spread:?}");
    assert_eq!(
        client.enqueue(Errand { n: 400 }).queue(queue.name().as_str()).await.unwrap().admission(),
        Admission::Enqueued
    );
    let (tell, mut told) = telling();
    let worker = start(worker(&client, &queue, tells(&tell)));
    let mut ran = BTreeSet::new();
    for _ in 0..=400 {
        ran.insert(told.next().await);
    }
    assert!(ran.into_iter().eq(0..=400));
    completed(&queue, 401).await;
    assert_eq!(queue.counts().await.unwrap().unfinished(), 0);
    assert_eq!(worker.stop().await.completed, 401);
}

#[tokio::test]
async fn outcomes_stand_in_the_order_of_the_jobs_whatever_their_partitions() {
    let (client, queue) = shared("order", 5).await;
    let ids: Vec<_> =
        queue.enqueue_many((0..50).map(|n| Errand { n })).await.unwrap().iter().map(emq::Ticket::id).collect();
    // Each second one is there already; one has a group that can't be one.
    let mut drafts: Vec<_> = (0..50).map(|n| Draft::of(Errand { n })).collect();
    for n in (0..50).step_by(2) {
        drafts[n] = Draft::of(Errand { n: n as u64 }).id(ids[n]);
    }
    drafts[7] = Draft::of(Errand { n: 7 }).group("has space");
    let error =
        client.enqueue_many(drafts.into_iter().map(|draft| draft.queue(queue.name().as_str()))).await.unwrap_err();
    for (n, outcome) in error.outcomes.iter().enumerate() {
        match outcome {
            Ok(ticket) if n % 2 == 0 => assert_eq!(ticket.admission(), Admission::Duplicate(ids[n])),
            Ok(ticket) => assert_eq!(ticket.admission(), Admission::Enqueued, "{n}"),
            Err(_) => assert_eq!(n, 7),
        }
    }
}

#[tokio::test]
async fn a_lane_is_whole_in_one_partition_and_a_key_unique_over_all() {
    let (_, queue) = shared("whole", 8).await;
    for n in 0..24 {
        queue.enqueue(Errand { n }).group(format!("tenant-{}", n % 4)).await.unwrap();
    }
    let lanes = queue.lanes(0, 100).await.unwrap();
    assert_eq!(
        lanes.iter().map(|lane| (lane.name.as_str(), lane.waiting)).collect::<BTreeSet<_>>(),
        [("tenant-0", 6), ("tenant-1", 6), ("tenant-2", 6), ("tenant-3", 6)].into()
    );
    assert_eq!(queue.counts().await.unwrap().lanes, 4, "no lane stands in two partitions");
    assert_eq!(queue.lanes(1, 2).await.unwrap(), lanes[1..3]);
    assert_eq!(queue.lane("tenant-2").unwrap().state().await.unwrap().waiting, 6);

    for key in 0..20 {
        let key = format!("invoice-{key}");
        let first = queue.enqueue(Errand { n: 1 }).unique(&key).await.unwrap();
        let second = queue.enqueue(Errand { n: 2 }).unique(&key).await.unwrap();
        assert_eq!(second.admission(), Admission::Duplicate(first.id()));
    }
}

#[tokio::test]
async fn a_key_of_a_job_in_a_lane_is_unique_in_its_lane() {
    let (_, queue) = shared("scoped", 8).await;
    let mut of_lanes = BTreeSet::new();
    for tenant in 0..20 {
        let group = format!("tenant-{tenant}");
        let first = queue.enqueue(Errand { n: 1 }).group(&group).unique("nightly").await.unwrap();
        assert_eq!(first.admission(), Admission::Enqueued, "whichever lanes share a partition");
        let second = queue.enqueue(Errand { n: 1 }).group(&group).unique("nightly").await.unwrap();
        assert_eq!(second.admission(), Admission::Duplicate(first.id()));
        of_lanes.insert(first.id());
    }
    let without = queue.enqueue(Errand { n: 1 }).unique("nightly").await.unwrap();
    assert!(without.admission() == Admission::Enqueued && of_lanes.len() == 20);
}

#[tokio::test]
async fn a_job_is_found_by_its_id_wherever_it_is() {
    let (client, queue) = shared("found", 8).await;
    let plain = queue.enqueue(Errand { n: 1 }).await.unwrap();
    let of_lane = queue.enqueue(Errand { n: 2 }).group("tenant-7").await.unwrap();
    let of_key = queue.enqueue(Errand { n: 3 }).unique("invoice-42").await.unwrap();
    // An operator's client knows of no partitions.
    let operator =
        Client::connect(support::server().await.url()).await.unwrap().partitioned(queue.name().as_str()).unwrap();
    for queue in [&queue, &operator] {
        for ticket in [&plain, &of_lane, &of_key] {
            let found = queue.find(ticket.id()).await.unwrap().expect("it is there");
            assert_eq!(found.name(), ticket.queue().name());
            assert_eq!(queue.state(ticket.id()).await.unwrap(), Some(JobState::Pending));
            assert_eq!(queue.get(ticket.id()).await.unwrap().unwrap().id, ticket.id());
            assert_eq!(queue.result::<Errand>(ticket.id()).await.unwrap(), JobResult::Unfinished(JobState::Pending));
        }
        let nobody = "JOB0JZGkP9AMvv".parse().unwrap();
        assert!(queue.find(nobody).await.unwrap().is_none());
        assert_eq!((queue.state(nobody).await.unwrap(), queue.cancel(nobody).await.unwrap()), (None, Cancelled::Gone));
        assert_eq!(queue.result::<Errand>(nobody).await.unwrap(), JobResult::Unknown);
        assert_eq!(
            (queue.remove(nobody).await.unwrap(), queue.revive(nobody).await.unwrap()),
            (Removed::Gone, Revived::Gone)
        );
    }
    drop(client);
}

#[tokio::test]
async fn who_waits_for_a_job_gets_its_result_by_the_ticket_and_by_the_id() {
    let (client, queue) = shared("results", 6).await;
    let running = start(worker(&client, &queue, Does::new(|n, _| async move { Completion::of(&(2 * n)) })));
    for n in 0..12 {
        let enqueue = queue.enqueue(Errand { n });
        let ticket = if n % 3 == 0 { enqueue.group(format!("lane-{n}")).await } else { enqueue.await }.unwrap();
        assert_eq!(ticket.wait().await.unwrap(), 2 * n);
        assert_eq!(queue.wait::<Errand>(ticket.id()).await.unwrap(), 2 * n);
        assert_eq!(queue.wait_for::<Errand>(ticket.id(), ms(5_000)).await.unwrap(), 2 * n);
        assert_eq!(queue.result::<Errand>(ticket.id()).await.unwrap(), JobResult::Done(2 * n));
    }
    running.stop().await;
}

/// The type's own queue is `default`.
#[tokio::test]
async fn a_result_is_asked_for_in_all_partitions_of_the_types_own_queue() {
    let server = Server::start().await;
    let (client, queue) = divided(&server, "default", 6).await;
    let mut events = client.events("default").await.unwrap();
    let running = start(worker(&client, &queue, Does::new(|n, _| async move { Completion::of(&n) })));
    let mut ids = BTreeSet::new();
    for n in 0..6 {
        let ticket = client.enqueue(Errand { n }).group(format!("lane-{n}")).await.unwrap();
        ticket.wait().await.unwrap();
        assert_eq!(client.result::<Errand>(ticket.id()).await.unwrap(), JobResult::Done(n));
        ids.insert(ticket.id());
    }
    let mut told = BTreeSet::new();
    while told.len() < 6 {
        if let Event::Completed { id } = events.next().await.unwrap() {
            told.insert(id);
        }
    }
    assert_eq!(told, ids, "and the events of all partitions are told");
    running.stop().await;
    client.close().await;
    while let Some(event) = events.next().await {
        assert_eq!(event, Event::Gap, "they end with the client");
    }
}

#[tokio::test]
async fn a_pause_holds_all_partitions_and_a_resume_lets_all_go_on() {
    let (client, queue) = shared("paused", 4).await;
    queue.pause().await.unwrap();
    assert!(queue.counts().await.unwrap().paused);
    let (tell, mut told) = telling();
    let running = start(worker(&client, &queue, tells(&tell)));
    queue.enqueue_many((0..40).map(|n| Errand { n })).await.unwrap();
    for partition in queue.partitions().await.unwrap() {
        assert!(partition.claimer("nobody").claim(10).await.unwrap().jobs.is_empty());
    }
    assert!(told.rest().is_empty());
    queue.resume().await.unwrap();
    for _ in 0..40 {
        told.next().await;
    }
    assert!(!queue.counts().await.unwrap().paused);
    running.stop().await;
}

#[tokio::test]
async fn a_job_is_cancelled_removed_and_revived_in_the_partition_that_has_it() {
    let (client, queue) = shared("verbs", 6).await;
    let fails = Does::new(|_, _| async { Err(JobError::permanent("no such student")) });
    let mut tickets = Vec::new();
    for n in 0..6 {
        tickets.push(queue.enqueue(Errand { n }).group(format!("lane-{n}")).delay(ms(3_600_000)).await.unwrap());
    }
    assert_eq!(queue.counts().await.unwrap().scheduled, 6);
    for pair in tickets.chunks(2) {
        assert_eq!(queue.cancel(pair[0].id()).await.unwrap(), Cancelled::AtOnce);
        assert_eq!(queue.remove(pair[1].id()).await.unwrap(), Removed::Removed);
    }
    assert_eq!(queue.counts().await.unwrap().unfinished(), 0);
    let running = start(worker(&client, &queue, fails));
    let failed: Vec<_> = queue.enqueue_many((0..20).map(|n| Errand { n })).await.unwrap();
    while queue.counts().await.unwrap().dead < 20 {
        tokio::time::sleep(ms(5)).await;
    }
    running.stop().await;
    let letters = queue.list(In::Dead, 0, 100).await.unwrap();
    assert!(letters.is_sorted_by(|one, other| one.score <= other.score), "as in one queue");
    assert_eq!(
        letters.iter().map(|letter| letter.id).collect::<BTreeSet<_>>(),
        failed.iter().map(emq::Ticket::id).collect()
    );
    let (page, rest) = (queue.list(In::Dead, 0, 15).await.unwrap(), queue.list(In::Dead, 15, 15).await.unwrap());
    assert_eq!([page, rest].concat(), letters, "page by page");
    for letter in letters {
        assert_eq!(queue.revive(letter.id).await.unwrap(), Revived::Revived);
    }
    assert_eq!(queue.counts().await.unwrap().pending, 20);
}

#[tokio::test]
async fn purge_drain_and_obliterate_reach_all_partitions() {
    let (_, queue) = shared("emptied", 5).await;
    let fill = async || {
        queue.enqueue_many((0..50).map(|n| Errand { n })).await.unwrap();
        queue.enqueue_many((0..50).map(|n| Draft::of(Errand { n }).group(format!("lane-{}", n % 7)))).await.unwrap();
        queue.enqueue_many((0..50).map(|n| Draft::of(Errand { n }).delay(ms(3_600_000)))).await.unwrap();
    };
    fill().await;
    assert_eq!(queue.purge(In::Scheduled).all().await.unwrap(), 50);
    assert_eq!(queue.drain().all().await.unwrap(), 100);
    assert_eq!(queue.counts().await.unwrap().unfinished(), 0);

    fill().await;
    let last = queue.partitions().await.unwrap().pop().unwrap();
    let held = last.claimer("holder").claim(1).await.unwrap();
    assert_eq!(held.jobs.len(), 1);
    assert!(matches!(queue.obliterate().all().await, Err(PurgeError::Active)));
    assert_eq!(queue.counts().await.unwrap().unfinished(), 150, "nothing was deleted in any");
    assert_eq!(queue.obliterate().force().all().await.unwrap(), 150);
    let mut raw = Raw::connect(support::server().await).await;
    let left = Dump::of(&mut raw, &format!("emq:{{{}*", queue.name())).await;
    assert_eq!(left.keys(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_limit_is_split_and_never_exceeded() {
    let (client, queue) = shared("limited", 4).await;
    let error = queue.set_concurrency(3).await.unwrap_err();
    assert!(matches!(error, LimitError::TooLow { limit: 3, partitions: 4 }), "{error}");
    queue.set_concurrency(6).await.unwrap();
    queue.enqueue_many((0..100).map(|n| Errand { n })).await.unwrap();
    let (tell, mut told) = telling();
    let running = start(worker(&client, &queue, hangs(&tell)).grace(ms(0)));
    for _ in 0..6 {
        told.next().await;
    }
    tokio::time::sleep(ms(100)).await;
    assert_eq!((told.rest().len(), queue.counts().await.unwrap().active), (0, 6));
    queue.set_concurrency(None).await.unwrap();
    told.next().await;
    running.stop().await;

    queue.set_rate(Rate::per(8, ms(3_600_000))).await.unwrap();
    queue.set_concurrency(0).await.unwrap();
    for partition in queue.partitions().await.unwrap() {
        assert!(partition.claimer("nobody").claim(10).await.unwrap().jobs.is_empty());
    }
    queue.set_concurrency(None).await.unwrap();
    let mut started = 0;
    for partition in queue.partitions().await.unwrap() {
        started += partition.claimer("one").claim(10).await.unwrap().jobs.len();
    }
    assert_eq!(started, 4, "one of each partition, and the next in its share of the hour");
}

#[tokio::test]
async fn recurring_jobs_fire_in_the_first_partition_alone() {
    let (client, queue) = shared("recurring", 4).await;
    queue.recurring().upsert("often", Schedule::every(ms(20)), Errand { n: 7 }).await.unwrap();
    let (tell, mut told) = telling();
    let running = start(worker(&client, &queue, tells(&tell)));
    for _ in 0..3 {
        assert_eq!(told.next().await, 7);
    }
    queue.recurring().remove("often").await.unwrap();
    running.stop().await;
    let [first, others @ ..] = &queue.partitions().await.unwrap()[..] else { panic!("it has some") };
    assert!(first.counts().await.unwrap().completed >= 3);
    for other in others {
        assert_eq!(other.counts().await.unwrap(), emq::Counts::default());
    }
}

#[tokio::test]
async fn with_more_partitions_and_with_fewer_every_job_is_found_and_runs() {
    let server = support::server().await;
    let name = queue_name("resized");
    let mut ids = Vec::new();
    // Not divided at all at first.
    let plain = Client::connect(server.url()).await.unwrap();
    let jobs = |from: u64| (from..from + 40).map(|n| Errand { n });
    for ticket in plain.queue(&name).unwrap().enqueue_many(jobs(0)).await.unwrap() {
        ids.push(ticket.id());
    }
    for (at, partitions) in [4, 12, 3, 1].into_iter().enumerate() {
        let (_, queue) = divided(server, &name, partitions).await;
        for ticket in queue.enqueue_many(jobs(40 * (at as u64 + 1))).await.unwrap() {
            ids.push(ticket.id());
        }
        assert_eq!(queue.counts().await.unwrap().pending as usize, ids.len(), "with {partitions}");
        for id in &ids {
            assert_eq!(queue.state(*id).await.unwrap(), Some(JobState::Pending));
        }
    }
    assert_eq!(plain.partitioned(&name).unwrap().partitions().await.unwrap().len(), 12, "so many it ever had");
    // A worker that was told nothing serves them all the same.
    let queue = plain.partitioned(&name).unwrap();
    let (tell, mut told) = telling();
    let running = start(worker(&plain, &queue, tells(&tell)));
    let mut ran = BTreeSet::new();
    while ran.len() < 200 {
        ran.insert(told.next().await);
    }
    completed(&queue, 200).await;
    assert_eq!(running.stop().await.completed, 200);
}

#[tokio::test]
async fn a_partition_is_a_queue_that_others_can_serve_as_one() {
    let (_, queue) = shared("plain", 3).await;
    let ticket = queue.enqueue(Errand { n: 5 }).await.unwrap();
    let plain = Client::connect(support::server().await.url()).await.unwrap();
    let name = ticket.queue().name().clone();
    let (tell, mut told) = telling();
    let builder = Worker::builder(&plain).state(tells(&tell)).register::<Errand>().queue(name.as_str());
    let running = start(builder);
    assert_eq!(told.next().await, 5);
    completed(&queue, 1).await;
    running.stop().await;
}

#[tokio::test]
async fn sixteen_partitions_are_waited_for_on_one_connection_and_all_wake() {
    let server = Server::start().await;
    let (client, queue) = divided(&server, "quiet", 16).await;
    let (tell, mut told) = telling();
    let running = start(worker(&client, &queue, tells(&tell)).beat(ms(60_000)));
    let mut raw = Raw::connect(&server).await;
    let mut blocked = async || {
        let list = raw.command(&["CLIENT", "LIST"]).await;
        list.text().lines().filter(|line| line.contains("flags=b")).count()
    };
    while blocked().await != 1 {
        tokio::time::sleep(ms(5)).await;
    }
    let mut took = Vec::new();
    for (n, partition) in queue.partitions().await.unwrap().iter().enumerate() {
        let before = std::time::Instant::now();
        partition.enqueue(Errand { n: n as u64 }).await.unwrap();
        told.next().await;
        took.push(before.elapsed());
        completed(&queue, n as u64 + 1).await;
    }
    begins_at_once("a job in a partition", took).await;
    assert_eq!(blocked().await.max(1), 1);
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_limited_in_a_queue_is_limited_over_all_its_partitions() {
    let (client, queue) = shared("capped", 4).await;
    queue.enqueue_many((0..40).map(|n| Errand { n })).await.unwrap();
    let (tell, mut told) = telling();
    let name = queue.name().as_str();
    let running = start(worker(&client, &queue, hangs(&tell)).queue_concurrency(name, 3).concurrency(20).grace(ms(0)));
    for _ in 0..3 {
        told.next().await;
    }
    tokio::time::sleep(ms(100)).await;
    assert_eq!((told.rest().len(), queue.counts().await.unwrap().active), (0, 3));
    running.stop().await;
}

#[tokio::test]
async fn a_name_that_cant_be_divided_is_told_at_connect() {
    let url = support::server().await.url();
    for name in ["has space".to_owned(), "emq".to_owned(), "a".repeat(125)] {
        let error = Client::builder(&url).partitioned(&name, 4).connect().await.unwrap_err();
        assert!(matches!(error, emq::ConnectError::Queue(_)), "{error}");
    }
    let client = Client::builder(&url).partitioned(queue_name("none"), 0).connect().await.unwrap();
    let worker = Worker::builder(&client).state(is_done()).register::<Errand>().build().unwrap();
    drop(worker);
}
