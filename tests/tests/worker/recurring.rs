//! Slots of recurring jobs get their jobs, whichever worker is there.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use emq::{Completion, JobContext, Missed, Overlap, Recurrence, Schedule};

use support::Server;

use crate::errand::{Does, Errand, PATIENCE, Place, Tell, Told, ms, start, telling, tells};

/// A handler that tells its slot in Unix ms, takes so long, and is done.
fn tells_slots(tell: &Tell<u64>, takes: Duration) -> Does {
    let tell = tell.clone();
    Does::new(move |_, context: JobContext| {
        let slot = context.slot().map_or(0, |slot| slot.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64);
        tell.tell(slot);
        async move {
            tokio::time::sleep(takes).await;
            Ok(Completion::empty())
        }
    })
}

async fn slots(told: &mut Told<u64>, count: usize) -> Vec<u64> {
    let mut slots = Vec::new();
    while slots.len() < count {
        slots.push(told.next().await);
    }
    slots
}

/// Makes a recurring job stand at a slot so long ago.
async fn set_back(place: &Place, name: &str, by: Duration) {
    let record = place.key(format!("repeat:{name}"));
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - by;
    let at = at.as_millis().to_string();
    let mut raw = place.raw().await;
    raw.command(&["HSET", &record, "next", &at, "start", &at]).await;
    raw.command(&["ZADD", &place.key("repeat"), &at, name]).await;
}

#[tokio::test]
async fn slot_k_is_k_periods_after_the_start_however_long_the_jobs_take() {
    let place = Place::shared("slots").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells_slots(&tell, ms(70))));
    let recurring = place.queue.recurring();
    recurring.upsert("tick", Schedule::every(ms(50)), Errand { n: 0 }).await.unwrap();
    let first = recurring.get("tick").await.unwrap().unwrap().next.unwrap();
    let first = first.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut slots = slots(&mut told, 100).await;
    worker.stop().await;
    slots.sort_unstable();
    let begin = slots[0];
    assert!(begin <= first && (first - begin).is_multiple_of(50), "{begin} {first}");
    assert!(slots.iter().copied().eq((0..100).map(|k| begin + 50 * k)), "{slots:?}");
}

#[tokio::test]
async fn a_slot_starts_within_50_ms_on_an_idle_worker_also_if_it_was_registered_while_that_slept() {
    let server = Server::start().await;
    let place = Place::on(&server, "prompt").await;
    let (tell, mut told) = telling();
    // A beat that is too long to help.
    let worker = start(place.worker(tells_slots(&tell, ms(0))).beat(Duration::from_secs(3_600)));
    place.waited_for(1).await;
    let recurring = place.queue.recurring();
    recurring.upsert("late", Schedule::every(Duration::from_secs(3_600)), Errand { n: 0 }).await.unwrap();
    let mut late = Vec::new();
    recurring.upsert("tick", Schedule::every(ms(300)), Errand { n: 0 }).await.unwrap();
    for _ in 0..9 {
        let slot = told.next().await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        late.push(Duration::from_millis(now.saturating_sub(slot)));
    }
    worker.stop().await;
    // The middle one, since the machine may be busy.
    assert!(crate::errand::median(late.clone()) < ms(50), "{late:?}");
}

#[tokio::test]
async fn many_workers_enqueue_a_slot_once() {
    let place = Place::shared("once").await;
    let (tell, mut told) = telling();
    let workers: Vec<_> = (0..4).map(|_| start(place.worker(tells_slots(&tell, ms(5))))).collect();
    let recurring = place.queue.recurring();
    // And as many registrations.
    for _ in 0..8 {
        recurring.upsert("tick", Schedule::every(ms(40)), Errand { n: 0 }).await.unwrap();
    }
    let mut slots = slots(&mut told, 60).await;
    for worker in workers {
        worker.stop().await;
    }
    slots.extend(told.rest());
    slots.sort_unstable();
    let begin = slots[0];
    assert!(slots.iter().copied().eq((0..slots.len() as u64).map(|k| begin + 40 * k)), "{slots:?}");
}

#[tokio::test]
async fn a_week_without_workers_is_skipped_or_made_up_for() {
    let week = Duration::from_secs(7 * 24 * 3_600) + Duration::from_secs(30 * 60);
    let hour = Duration::from_secs(3_600);
    for (missed, expected) in [(Missed::Skip, 0), (Missed::Once, 1), (Missed::Backfill(5), 5)] {
        let place = Place::shared("week").await;
        let recurring = place.queue.recurring();
        let recurrence = Recurrence::new(Schedule::every(hour)).missed(missed);
        recurring.upsert("report", recurrence, Errand { n: 0 }).await.unwrap();
        set_back(&place, "report", week).await;
        let (tell, mut told) = telling();
        let worker = start(place.worker(tells_slots(&tell, ms(0))));
        let is_ahead =
            async || recurring.get("report").await.unwrap().unwrap().next.is_some_and(|next| next > SystemTime::now());
        place.until(is_ahead).await;
        place.completed(expected).await;
        worker.stop().await;
        let mut slots = told.rest();
        slots.sort_unstable();
        assert_eq!(slots.len() as u64, expected, "{missed:?}");
        assert!(slots.windows(2).all(|pair| pair[1] - pair[0] == 3_600_000), "{slots:?}");
    }
}

#[tokio::test]
async fn slots_of_a_paused_queue_wait_for_its_end() {
    let place = Place::shared("paused").await;
    let mut raw = place.raw().await;
    raw.command(&["HSET", &place.key("meta"), "paused", "1"]).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    let recurring = place.queue.recurring();
    let once = Recurrence::new(Schedule::every(ms(50))).overlap(Overlap::Skip);
    recurring.upsert("once", once, Errand { n: 1 }).await.unwrap();
    recurring.upsert("each", Schedule::every(ms(50)), Errand { n: 2 }).await.unwrap();
    place.until(async || place.queue.counts().await.unwrap().pending >= 6).await;
    assert_eq!(told.rest(), [0; 0]);
    recurring.remove("each").await.unwrap();
    recurring.remove("once").await.unwrap();
    let waiting = place.queue.counts().await.unwrap().pending;
    raw.command(&["HDEL", &place.key("meta"), "paused"]).await;
    place.completed(waiting).await;
    worker.stop().await;
    let numbers = told.rest();
    assert_eq!(numbers.len() as u64, waiting);
    assert_eq!(numbers.iter().filter(|n| **n == 1).count(), 1, "of those that don't overlap, one had waited");
}

#[tokio::test]
async fn a_slot_that_is_to_wait_runs_when_its_predecessor_has_ended() {
    let place = Place::shared("wait").await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells_slots(&tell, ms(120))).beat(ms(20)));
    let recurring = place.queue.recurring();
    let recurrence = Recurrence::new(Schedule::every(ms(40))).overlap(Overlap::Wait);
    recurring.upsert("chain", recurrence, Errand { n: 0 }).await.unwrap();
    for _ in 0..6 {
        told.next().await;
        assert!(place.queue.counts().await.unwrap().unfinished() <= 1);
    }
    worker.stop().await;
}

#[tokio::test]
async fn slots_that_are_made_up_for_one_by_one_follow_each_other_at_once() {
    let place = Place::shared("chain").await;
    let recurring = place.queue.recurring();
    let recurrence = Recurrence::new(Schedule::every(Duration::from_secs(3_600)));
    let recurrence = recurrence.missed(Missed::Backfill(20)).overlap(Overlap::Wait);
    recurring.upsert("report", recurrence, Errand { n: 0 }).await.unwrap();
    set_back(&place, "report", Duration::from_secs(24 * 3_600)).await;
    let (tell, mut told) = telling();
    // Its beat comes once.
    let worker = start(place.worker(tells_slots(&tell, ms(10))).beat(ms(60_000)));
    let slots = slots(&mut told, 20).await;
    assert!(slots.windows(2).all(|pair| pair[1] - pair[0] == 3_600_000), "{slots:?}");
    place.completed(20).await;
    worker.stop().await;
}

#[tokio::test]
async fn what_is_registered_outlasts_the_workers_that_run_it() {
    let place = Place::shared("short").await;
    let recurring = place.queue.recurring();
    recurring.upsert("rare", Schedule::every(ms(400)), Errand { n: 0 }).await.unwrap();
    let (tell, mut told) = telling();
    let begun = Instant::now();
    let mut ran = 0;
    // None of the workers lives for as long as the period.
    while ran < 2 {
        let worker = start(place.worker(tells_slots(&tell, ms(0))));
        tokio::time::sleep(ms(100)).await;
        worker.stop().await;
        ran += told.rest().len();
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[tokio::test]
async fn a_recurring_job_that_cant_be_read_holds_up_no_other() {
    let place = Place::shared("unread").await;
    let mut raw = place.raw().await;
    let record = place.key("repeat:foreign");
    raw.command(&["HSET", &record, "schedule", "lunar 5 -", "next", "1", "payload", "{}"]).await;
    raw.command(&["ZADD", &place.key("repeat"), "1", "foreign"]).await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells_slots(&tell, ms(0))));
    place.queue.recurring().upsert("tick", Schedule::every(ms(50)), Errand { n: 0 }).await.unwrap();
    slots(&mut told, 3).await;
    worker.stop().await;
    assert_eq!(raw.command(&["HGET", &record, "next"]).await.text(), "1");
}

#[tokio::test]
async fn more_than_fit_into_one_call_are_enqueued_also_behind_such_as_nobody_can_read() {
    let place = Place::shared("many").await;
    let mut raw = place.raw().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let (unreadable, good) = (1_050, 1_150);
    for n in 0..unreadable + good {
        let (schedule, next) = if n < unreadable { ("lunar 5 -", 1) } else { ("every 3600000 -", now) };
        let (record, next) = (place.key(format!("repeat:r{n}")), next.to_string());
        let fields = ["schedule", schedule, "start", &next, "next", &next, "name", "errand", "payload", "{\"n\":1}"];
        raw.command(&[&["HSET", record.as_str()], &fields[..]].concat()).await;
        raw.command(&["ZADD", &place.key("repeat"), &next, &format!("r{n}")]).await;
    }
    let worker = start(place.worker(crate::errand::is_done()));
    place.completed(good as u64).await;
    worker.stop().await;
    assert_eq!(place.queue.counts().await.unwrap().completed, good as u64);
}
