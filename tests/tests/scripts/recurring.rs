//! What registering, pausing and removing a recurring job writes.

use std::time::Duration;

use emq::{Missed, NameError, Overlap, Recurrence, RecurringError, Schedule, ScheduleError, Upserted};

use crate::scene::{MINUTE, Work, assert_after, scene};

const HOUR: Duration = Duration::from_secs(3_600);

fn hourly() -> Schedule {
    Schedule::every(HOUR)
}

#[tokio::test]
async fn a_registration_writes_the_record_and_the_next_slot() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    let recurrence = Recurrence::new(hourly()).missed(Missed::Backfill(3)).overlap(Overlap::Skip);
    let before = scene.now().await;
    let upsert = recurring.upsert("report", recurrence, Work { n: 7 });
    let upsert = upsert.priority(2).group("a").max_attempts(4).expires_in(MINUTE).header("tenant", "north");
    let (upserted, mut changes) = scene.changes(async { upsert.await }).await;
    assert_eq!(upserted.unwrap(), Upserted::Created);
    assert_eq!(scene.command("HSTRLEN @repeat:report digest").await.int(), 40);
    changes.retain(|change| !change.contains(" digest = "));
    assert_eq!(
        changes,
        [
            "+ marker zset 0 @ 0",
            "+ repeat zset report @ T",
            "+ repeat:report hash expires = 60000",
            "+ repeat:report hash group = a",
            r#"+ repeat:report hash headers = {"tenant":"north"}"#,
            "+ repeat:report hash max_attempts = 4",
            "+ repeat:report hash missed = backfill 3",
            "+ repeat:report hash name = work",
            "+ repeat:report hash next = T",
            "+ repeat:report hash overlap = skip",
            r#"+ repeat:report hash payload = {"n":7}"#,
            "+ repeat:report hash priority = 2",
            "+ repeat:report hash schedule = every 3600000 -",
            "+ repeat:report hash start = T",
        ]
    );
    let next = scene.command("ZSCORE @repeat report").await.text().parse().unwrap();
    let after = scene.now().await;
    assert_after(next, HOUR, before, after);
}

#[tokio::test]
async fn the_same_again_changes_nothing_not_even_the_phase() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    for _ in 0..3 {
        let again = recurring.upsert("report", hourly(), Work { n: 1 });
        let upserted = scene.unchanged(async { again.await }).await;
        assert_eq!(upserted.unwrap(), Upserted::Unchanged);
    }
}

#[tokio::test]
async fn changed_options_keep_the_next_slot_and_a_changed_schedule_begins_anew() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).priority(3).await.unwrap();
    let first = recurring.get("report").await.unwrap().unwrap();
    let upserted = recurring.upsert("report", hourly(), Work { n: 2 }).await.unwrap();
    assert_eq!(upserted, Upserted::Changed);
    let second = recurring.get("report").await.unwrap().unwrap();
    assert_eq!((second.next, second.priority), (first.next, 0), "what isn't said any more is gone");
    assert_eq!(scene.command("HGET @repeat:report payload").await.text(), r#"{"n":2}"#);

    recurring.upsert("report", Schedule::every(MINUTE), Work { n: 2 }).await.unwrap();
    let third = recurring.get("report").await.unwrap().unwrap();
    assert!(third.next < first.next, "{third:?}");
    assert_eq!(third.schedule, Some(Schedule::every(MINUTE)));
}

#[tokio::test]
async fn a_cron_schedule_stands_at_its_next_slot_by_the_servers_clock() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    let schedule = Schedule::cron("0 9 * * MON-FRI").in_zone("Europe/Berlin");
    recurring.upsert("report", schedule.clone(), Work { n: 1 }).await.unwrap();
    let found = recurring.get("report").await.unwrap().unwrap();
    let now = std::time::UNIX_EPOCH + Duration::from_millis(scene.now().await as u64);
    assert_eq!(found.next, schedule.next_after(now).unwrap());
    assert_eq!(found.schedule, Some(schedule));
}

#[tokio::test]
async fn what_cant_be_a_recurring_job_is_refused_before_anything_is_sent() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    for name in ["", "has space", "a:b", &"x".repeat(129)] {
        let upsert = recurring.upsert(name, hourly(), Work { n: 1 });
        let refused = scene.unchanged(async { upsert.await }).await;
        assert!(matches!(refused, Err(RecurringError::Name(_))), "{name:?}: {refused:?}");
        assert!(matches!(recurring.get(name).await, Err(RecurringError::Name(_))), "{name:?}");
        assert!(matches!(recurring.remove(name).await, Err(RecurringError::Name(_))), "{name:?}");
        assert!(matches!(recurring.run_now(name).await, Err(RecurringError::Name(_))), "{name:?}");
    }
    for schedule in [
        Schedule::every(Duration::ZERO),
        Schedule::cron("0 0 30 2 *"),
        Schedule::cron("61 * * * *"),
        Schedule::cron("0 0 * * *").in_zone("Mars/Base"),
    ] {
        let upsert = recurring.upsert("report", schedule, Work { n: 1 });
        let refused = scene.unchanged(async { upsert.await }).await;
        assert!(matches!(refused, Err(RecurringError::Schedule(_))), "{refused:?}");
    }
    let never = recurring.upsert("report", Schedule::cron("0 0 30 2 *"), Work { n: 1 }).await.unwrap_err();
    assert!(matches!(never, RecurringError::Schedule(ScheduleError::Never { .. })));
    let lane = recurring.upsert("report", hourly(), Work { n: 1 }).group("a b").await.unwrap_err();
    assert!(matches!(lane, RecurringError::Job(emq::EnqueueError::Group(NameError::Character { .. }))));
}

#[tokio::test]
async fn a_pause_lets_slots_pass_and_a_resumption_goes_on_with_one_to_come() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    let before = recurring.get("report").await.unwrap().unwrap();
    let (paused, changes) = scene.changes(recurring.pause("report")).await;
    assert!(paused.unwrap());
    assert_eq!(changes, ["~ repeat zset report @ inf (was T)", "+ repeat:report hash paused = 1"]);
    assert!(scene.unchanged(recurring.pause("report")).await.unwrap());
    let paused = recurring.get("report").await.unwrap().unwrap();
    assert_eq!((paused.paused, paused.next), (true, None));

    // A deploy in the meantime doesn't end the pause.
    recurring.upsert("report", Schedule::every(HOUR * 2), Work { n: 2 }).await.unwrap();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    assert!(recurring.get("report").await.unwrap().unwrap().paused);
    assert_eq!(scene.command("ZSCORE @repeat report").await.text(), "inf");

    assert!(recurring.resume("report").await.unwrap());
    let resumed = recurring.get("report").await.unwrap().unwrap();
    assert!(!resumed.paused && resumed.next >= before.next, "{resumed:?}");
    assert!(scene.unchanged(recurring.resume("report")).await.unwrap(), "it goes on already");
}

#[tokio::test]
async fn a_phase_outlasts_a_pause() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    let before = recurring.get("report").await.unwrap().unwrap().next;
    recurring.pause("report").await.unwrap();
    recurring.resume("report").await.unwrap();
    assert_eq!(recurring.get("report").await.unwrap().unwrap().next, before);
    scene.command("HSET @repeat:report start 1000 paused 1").await;
    recurring.resume("report").await.unwrap();
    let next = scene.command("HGET @repeat:report next").await.text().parse::<u64>().unwrap();
    assert_eq!(next % 3_600_000, 1_000);
}

#[tokio::test]
async fn a_removal_leaves_nothing_but_the_jobs_it_has_got() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    let id = recurring.run_now("report").await.unwrap().unwrap();
    assert!(recurring.remove("report").await.unwrap());
    assert_eq!(scene.command("EXISTS @repeat @repeat:report").await.int(), 0);
    assert_eq!(scene.queue.state(id).await.unwrap(), Some(emq::JobState::Pending));
    assert!(!scene.unchanged(recurring.remove("report")).await.unwrap());
    assert!(!scene.unchanged(recurring.pause("report")).await.unwrap());
    assert!(!scene.unchanged(recurring.resume("report")).await.unwrap());
    assert_eq!(scene.unchanged(recurring.run_now("report")).await.unwrap(), None);
    assert_eq!(recurring.get("report").await.unwrap(), None);
}

#[tokio::test]
async fn a_list_is_in_the_order_of_the_next_slots_with_the_paused_ones_last() {
    let scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    for (name, minutes) in [("c", 3), ("a", 1), ("b", 2), ("paused", 1)] {
        recurring.upsert(name, Schedule::every(MINUTE * minutes), Work { n: 1 }).await.unwrap();
    }
    recurring.pause("paused").await.unwrap();
    let names = async |offset, count| -> Vec<String> {
        recurring.list(offset, count).await.unwrap().into_iter().map(|job| job.name).collect()
    };
    assert_eq!(names(0, 100).await, ["a", "b", "c", "paused"]);
    assert_eq!(names(1, 2).await, ["b", "c"]);
}

#[tokio::test]
async fn running_now_enqueues_a_job_beside_the_slots() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    let upsert = recurring.upsert("report", hourly(), Work { n: 9 });
    upsert.priority(4).max_attempts(2).header("tenant", "north").await.unwrap();
    recurring.pause("report").await.unwrap();
    scene.command("DEL @marker").await;
    let (id, changes) = scene.changes(recurring.run_now("report")).await;
    let id = id.unwrap().unwrap().to_string();
    let changes: Vec<_> = changes.iter().map(|change| change.replace(&id, "J1")).collect();
    assert_eq!(
        changes,
        [
            "+ job:J1 hash attempts = 0",
            r#"+ job:J1 hash headers = {"tenant":"north"}"#,
            "+ job:J1 hash max_attempts = 2",
            "+ job:J1 hash more = 1",
            "+ job:J1 hash name = work",
            r#"+ job:J1 hash payload = {"n":9}"#,
            "+ job:J1 hash priority = 4",
            "+ job:J1 hash state = pending",
            "+ marker zset 0 @ 0",
            "+ pending zset J1 @ 4",
        ]
    );
}

#[tokio::test]
async fn a_key_of_another_type_is_an_error_and_holds_up_no_other() {
    let mut scene = scene("recurring").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("good", hourly(), Work { n: 1 }).await.unwrap();
    scene.command("SET @repeat:bad text").await;
    scene.command("ZADD @repeat 1 bad").await;
    let listed = recurring.list(0, 10).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["bad", "good"]);
    assert_eq!(listed[0].schedule, None);
    let upsert = recurring.upsert("bad", hourly(), Work { n: 1 });
    assert!(matches!(scene.unchanged(async { upsert.await }).await, Err(RecurringError::Call(_))));
}

#[tokio::test]
async fn on_a_clock_that_went_back_no_slot_comes_twice() {
    let mut scene = scene("back").await;
    let recurring = scene.queue.recurring();
    recurring.upsert("report", hourly(), Work { n: 1 }).await.unwrap();
    // Its last slot was in half an hour, as the clock has it now.
    let last = scene.now().await as u64 + 1_800_000;
    scene.command(&format!("HSET @repeat:report last {last}")).await;
    recurring.upsert("report", Schedule::every(MINUTE), Work { n: 1 }).await.unwrap();
    let next = scene.command("HGET @repeat:report next").await.text().parse::<u64>().unwrap();
    assert!((last + 1..=last + 60_000).contains(&next), "{last} {next}");
    recurring.pause("report").await.unwrap();
    recurring.resume("report").await.unwrap();
    let next = scene.command("HGET @repeat:report next").await.text().parse::<u64>().unwrap();
    assert!(next > last, "{last} {next}");
}
