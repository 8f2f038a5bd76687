//! Each way a run can end, and what is written for it.

use std::sync::{Arc, Mutex};

use emq::{Completion, JobContext, JobError, JobId, JobState, Settled};
use support::{
    Proxy, Server,
    proxy::{Command, When},
};

use tokio::sync::Notify;

use crate::errand::{Does, Place, Result, ms, start, telling};

/// Runs one job that ends so, and waits until it stands where it should.
async fn ends(label: &str, how: fn(JobContext) -> Result, state: JobState) -> (Place, JobId) {
    let place = Place::shared(label).await;
    let worker = start(place.worker(Does::new(move |_, ctx| std::future::ready(how(ctx)))));
    let id = place.errand(7).unique("key").await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(state)).await;
    worker.stop().await;
    (place, id)
}

#[tokio::test]
async fn a_job_that_is_done_leaves_its_result_and_its_id() {
    let (place, id) = ends("done", |_| Completion::of(&"receipt 7"), JobState::Finished).await;
    let dump = place.dump().await;
    let left = [place.key("done"), place.key(format!("job:{id}:result")), place.key("metrics:completed")];
    let mut keys = dump.keys();
    keys.sort_unstable();
    let mut left: Vec<&str> = left.iter().map(String::as_str).collect();
    left.sort_unstable();
    assert_eq!(keys, left);
    assert_eq!(dump.get(&place.key(format!("job:{id}:result")), ""), Some("\"receipt 7\""));
    assert!(dump.expires(&place.key(format!("job:{id}:result"))));
    assert!(dump.get(&place.key("done"), &id.to_string()).is_some());
}

#[tokio::test]
async fn a_job_that_was_discarded_leaves_no_result() {
    let (place, id) = ends("discard", |_| Err(JobError::discard("nothing to do")), JobState::Finished).await;
    let dump = place.dump().await;
    assert_eq!(dump.keys(), [place.key("done").as_str(), place.key("metrics:completed").as_str()]);
    assert!(dump.get(&place.key("done"), &id.to_string()).is_some());
}

#[tokio::test]
async fn a_job_that_failed_for_good_is_a_dead_letter_with_the_reason() {
    let (place, id) = ends("dead", |_| Err(JobError::permanent("no such student")), JobState::Dead).await;
    let row = place.key(format!("job:{id}"));
    let dump = place.dump().await;
    assert_eq!(dump.get(&row, "state"), Some("dead"));
    assert_eq!(dump.get(&row, "last_error"), Some("no such student"));
    assert_eq!(dump.get(&row, "attempts"), Some("1"));
    assert_eq!(dump.get(&row, "payload"), Some("{\"n\":7}"));
    assert_eq!(dump.get(&row, "worker"), None);
    assert!(dump.get(&place.key("dead"), &id.to_string()).is_some());
    assert_eq!(dump.get(&place.key("metrics:failed"), "count"), Some("1"));
    assert!(!dump.keys().contains(&place.key("de:key").as_str()), "its key is free again");
}

#[tokio::test]
async fn a_job_that_failed_is_on_the_schedule_with_its_failure() {
    let how = |_| Err(JobError::retry_after(ms(60_000)).because("the mail server said 451"));
    let (place, id) = ends("retry", how, JobState::Scheduled).await;
    let row = place.key(format!("job:{id}"));
    let dump = place.dump().await;
    assert_eq!(dump.get(&row, "failures"), Some("1"));
    assert_eq!(dump.get(&row, "last_error"), Some("the mail server said 451"));
    assert!(dump.get(&place.key("schedule"), &id.to_string()).is_some());
    assert!(dump.keys().contains(&place.key("de:key").as_str()), "its key is held still");
}

#[tokio::test]
async fn a_job_that_snoozes_is_on_the_schedule_without_a_failure() {
    let (place, id) = ends("snooze", |_| Err(JobError::snooze(ms(60_000))), JobState::Scheduled).await;
    let row = place.key(format!("job:{id}"));
    let dump = place.dump().await;
    assert_eq!(dump.get(&row, "failures"), None);
    assert_eq!(dump.get(&row, "last_error"), None);
    assert!(dump.get(&place.key("schedule"), &id.to_string()).is_some());
}

#[tokio::test]
async fn a_snooze_without_end_is_a_snooze() {
    let (place, id) = ends("forever", |_| Err(JobError::snooze(std::time::Duration::MAX)), JobState::Scheduled).await;
    assert!(place.field(id, "failures").await.is_none());
}

#[tokio::test]
async fn a_settling_whose_reply_is_lost_is_repeated_and_the_handler_isnt() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port());
    let place = Place::through(&server, &proxy.url(), "unheard").await;
    let runs = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&runs);
    let does = Does::new(move |n, _| {
        *counted.lock().unwrap() += 1;
        std::future::ready(if n % 2 == 0 { Ok(Completion::of(&n).unwrap()) } else { Err(JobError::permanent("odd")) })
    });
    // A settling is about a job's row.
    let settles = |command: &Command| command.name() == "EVALSHA" && contains(command.arg(3), b":job:JOB");
    proxy.cut_reply(settles, When::Every(2));
    place.enqueue(20).await;
    let worker = start(place.worker(does).concurrency(2));
    place
        .until(async || place.queue.counts().await.is_ok_and(|counts| (counts.completed, counts.dead) == (10, 10)))
        .await;
    assert!(proxy.cuts() >= 5, "{} cuts", proxy.cuts());
    proxy.clear();
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.dead, stats.stale, stats.unsettled), (10, 10, 0, 0));
    assert_eq!(*runs.lock().unwrap(), 20);
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_settling_waits_for_a_server_that_is_away_for_less_than_the_lease() {
    let server = Server::builder().append_only(true).start().await;
    let place = Place::on(&server, "away").await;
    let (tell, mut told) = telling();
    let go = Arc::new(tokio::sync::Notify::new());
    let wait = Arc::clone(&go);
    let does = Does::new(move |_, _| {
        tell.tell(());
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Completion::of(&7)
        }
    });
    let worker = start(place.worker(does).lease(ms(20_000)));
    let id = place.errand(0).await.unwrap().id();
    told.next().await;
    server.stop().await;
    go.notify_one();
    tokio::time::sleep(ms(1_500)).await;
    server.restart().await;
    place.until(async || place.queue.state(id).await.is_ok_and(|state| state == Some(JobState::Finished))).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.lost, stats.unsettled), (1, 0, 0));
    assert!(told.rest().is_empty(), "it ran once");
}

#[tokio::test]
async fn a_settling_that_is_refused_is_given_up_with_the_lease_and_the_job_comes_back() {
    let server = Server::start().await;
    let place = Place::on(&server, "refused").await;
    let (tell, mut told) = telling();
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.fence()));
        std::future::ready(Completion::of(&n))
    });
    // The place of what is done isn't what it should be.
    place.raw().await.command(&["SET", &place.key("done"), "not a set"]).await;
    let worker = start(place.worker(does).lease(ms(3_000)).beat(ms(100)).max_stalled(None));
    // Made by hand: an enqueue looks into `done` as well.
    let mut raw = place.raw().await;
    let row = place.key("job:JOB0KHTOWnGLuC");
    raw.command(&["HSET", &row, "state", "pending", "attempts", "0", "payload", "{\"n\":7}", "name", "errand"]).await;
    raw.command(&["ZADD", &place.key("pending"), "0", "JOB0KHTOWnGLuC"]).await;
    assert_eq!(told.next().await, (7, 1));
    assert_eq!(told.next().await, (7, 2), "it came back");
    assert!(worker.stats().unsettled >= 1);
    raw.command(&["DEL", &place.key("done")]).await;
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_completion_that_comes_after_another_workers_is_stale_and_not_counted_as_done() {
    let place = Place::shared("overtaken").await;
    let (tell, mut told) = telling();
    let go = Arc::new(Notify::new());
    let may_go = Arc::clone(&go);
    let does = Does::new(move |n, _| {
        tell.tell(n);
        let go = Arc::clone(&may_go);
        async move {
            go.notified().await;
            Ok(Completion::empty())
        }
    });
    // With room for one job, so that it doesn't take the job again itself.
    let worker = start(place.worker(does).concurrency(1));
    let id = place.errand(1).await.unwrap().id();
    told.next().await;

    place.raw().await.line(&format!("ZADD {} XX 1 {id}", place.key("active"))).await;
    place.queue.reap(None).await.unwrap();
    let mut other = place.queue.claimer("other");
    let claimed = other.claim(1).await.unwrap().jobs.remove(0);
    assert_eq!(place.queue.complete(&claimed.lease, Completion::empty()).await.unwrap(), Settled::Accepted);

    go.notify_one();
    place.until(async || worker.stats().in_hand == 0).await;
    let stats = worker.stop().await;
    assert_eq!((stats.completed, stats.stale), (0, 1));
}
