//! What a slot of a recurring job writes, once.

use std::time::Duration;

use emq::{JobState, Missed, Overlap, Recurrence, Schedule};
use support::Reply;

use crate::scene::{MINUTE, Scene, Work, scene, script};

const IDS: [&str; 3] = ["JOB0KHTOWnGLuC", "JOB0NgWEfAEJfs", "JOB0JZGkP9AMvv"];

/// A recurring job that stands at the slot `5000`.
async fn standing(label: &str, overlap: Overlap) -> Scene {
    let mut scene = scene(label).await;
    let recurrence = Recurrence::new(Schedule::every(MINUTE)).overlap(overlap).missed(Missed::Once);
    let recurring = scene.queue.recurring();
    recurring.upsert("report", recurrence, Work { n: 7 }).await.unwrap();
    stand_at(&mut scene, "5000").await;
    scene.command("DEL @marker").await;
    scene
}

async fn stand_at(scene: &mut Scene, slot: &str) {
    scene.command(&format!("HSET @repeat:report next {slot}")).await;
    scene.command(&format!("ZADD @repeat {slot} report")).await;
}

/// Calls the script as a worker does that has read what is on the server: with the words behind the nonce.
async fn fire(scene: &mut Scene, words: &str) -> Vec<String> {
    let keys = "@job: @pending @done @de: @marker @repeat @repeat: @";
    let mut args: Vec<Vec<u8>> = vec![b"EVAL".to_vec(), script("fire").into_bytes(), b"8".to_vec()];
    let prefix = format!("emq:{{{}}}:", scene.queue.name());
    args.extend(keys.split(' ').map(|key| key.replace('@', &prefix).into_bytes()));
    args.push(Vec::new());
    args.extend(words.split(' ').map(|word| word.trim_matches('_').as_bytes().to_vec()));
    let reply = scene.raw.command(&args).await;
    assert!(!reply.is_error(), "{reply}");
    reply.items().iter().map(|item| item.text().to_owned()).collect()
}

#[tokio::test]
async fn a_slot_gets_its_job_and_the_recurring_job_goes_on() {
    let mut scene = standing("fire", Overlap::Allow).await;
    let before = scene.dump().await;
    let words = format!("report 5000 65000 1 {} 5000", IDS[0]);
    assert_eq!(fire(&mut scene, &words).await, ["FIRED 1"]);
    let prefix = format!("emq:{{{}}}:", scene.queue.name());
    let changes: Vec<_> = before.diff(&scene.dump().await).iter().map(|line| line.replace(&prefix, "")).collect();
    let id = IDS[0];
    assert_eq!(
        changes,
        [
            format!("+ de:report.5000 string = {id}"),
            format!("+ job:{id} hash attempts = 0"),
            format!("+ job:{id} hash did = report.5000"),
            format!(r#"+ job:{id} hash headers = {{"emq-slot":"5000"}}"#),
            format!("+ job:{id} hash more = 1"),
            format!("+ job:{id} hash name = work"),
            format!(r#"+ job:{id} hash payload = {{"n":7}}"#),
            format!("+ job:{id} hash state = pending"),
            "+ marker zset 0 @ 0".to_owned(),
            format!("+ pending zset {id} @ 0"),
            "~ repeat zset report @ 65000 (was 5000)".to_owned(),
            format!("+ repeat:report hash job = {id}"),
            "+ repeat:report hash last = 5000".to_owned(),
            "~ repeat:report hash next = 65000 (was 5000)".to_owned(),
        ]
    );
}

#[tokio::test]
async fn who_comes_second_writes_nothing() {
    let mut scene = standing("fire", Overlap::Allow).await;
    let words = |id: &str| format!("report 5000 65000 1 {id} 5000");
    assert_eq!(fire(&mut scene, &words(IDS[0])).await, ["FIRED 1"]);
    let before = scene.dump().await;
    // The same call again, whose reply was lost, and that of another worker.
    for id in IDS {
        assert_eq!(fire(&mut scene, &words(id)).await, ["STALE"]);
    }
    assert_eq!(fire(&mut scene, &format!("nobody 5000 65000 1 {} 5000", IDS[1])).await, ["GONE"]);
    scene.queue.recurring().pause("report").await.unwrap();
    let words = format!("report 65000 125000 1 {} 65000", IDS[1]);
    assert_eq!(fire(&mut scene, &words).await, ["STALE"], "it is paused");
    scene.command("HDEL @repeat:report paused").await;
    scene.command("ZADD @repeat 65000 report").await;
    assert_eq!(before.diff(&scene.dump().await), Vec::<String>::new());
}

#[tokio::test]
async fn an_id_that_is_taken_writes_nothing() {
    let mut scene = standing("fire", Overlap::Allow).await;
    scene.command(&format!("HSET @job:{} state pending attempts 0 payload x nonce n", IDS[0])).await;
    scene.command(&format!("ZADD @done 9999999999999 {}", IDS[1])).await;
    let before = scene.dump().await;
    assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await, ["TAKEN n"]);
    assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[1])).await, ["TAKEN "]);
    assert_eq!(before.diff(&scene.dump().await), Vec::<String>::new());
}

#[tokio::test]
async fn a_slot_that_overlaps_is_skipped_or_waits() {
    for overlap in [Overlap::Skip, Overlap::Wait] {
        let mut scene = standing("overlap", overlap).await;
        assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await, ["FIRED 1"]);
        let words = format!("report 65000 125000 1 {} 65000", IDS[1]);
        let reply = fire(&mut scene, &words).await;
        assert_eq!(scene.queue.counts().await.unwrap().pending, 1, "{overlap:?}");
        if overlap == Overlap::Skip {
            assert_eq!(reply, ["FIRED 0"]);
            assert_eq!(scene.command("ZSCORE @repeat report").await.text(), "125000");
            stand_at(&mut scene, "65000").await;
        } else {
            assert_eq!(reply, ["HELD"]);
            assert_eq!(scene.command("HGET @repeat:report held").await.text(), "65000");
            let before = scene.dump().await;
            assert_eq!(fire(&mut scene, &words).await, ["HELD"]);
            assert_eq!(before.diff(&scene.dump().await), Vec::<String>::new());
        }
        // A dead letter has ended.
        let lease = scene.claim().await.lease;
        scene.queue.bury(&lease, "no").await.unwrap();
        assert_eq!(fire(&mut scene, &words).await, ["FIRED 1"], "{overlap:?}");
        assert_eq!(scene.command("HGET @repeat:report held").await, Reply::Nil);
    }
}

#[tokio::test]
async fn of_several_slots_that_must_not_overlap_the_first_runs() {
    let words = format!("report 5000 185000 3 {} 5000 {} 65000 {} 125000", IDS[0], IDS[1], IDS[2]);
    for (overlap, jobs, next) in
        [(Overlap::Allow, 3, "185000"), (Overlap::Skip, 1, "185000"), (Overlap::Wait, 1, "65000")]
    {
        let mut scene = standing("several", overlap).await;
        assert_eq!(fire(&mut scene, &words).await, [format!("FIRED {jobs}")], "{overlap:?}");
        assert_eq!(scene.queue.counts().await.unwrap().pending, jobs);
        assert_eq!(scene.command("HGET @repeat:report next").await.text(), next, "{overlap:?}");
    }
}

#[tokio::test]
async fn each_turn_of_a_call_is_dealt_with_by_itself() {
    let mut scene = standing("turns", Overlap::Allow).await;
    let words = format!("nobody 5000 65000 0 report 5000 65000 1 {} 5000 report 5000 65000 1 {} 5000", IDS[0], IDS[1]);
    assert_eq!(fire(&mut scene, &words).await, ["GONE", "FIRED 1", "STALE"]);
    // A schedule that is over, and one whose slots were missed.
    assert_eq!(fire(&mut scene, "report 65000 125000 0").await, ["FIRED 0"]);
    assert_eq!(fire(&mut scene, "report 125000 _ 0").await, ["FIRED 0"]);
    assert_eq!(scene.command("ZSCORE @repeat report").await.text(), "inf");
}

#[tokio::test]
async fn a_job_that_is_revived_or_removed_leaves_its_recurring_job_alone() {
    let mut scene = standing("revived", Overlap::Allow).await;
    fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await;
    let lease = scene.claim().await.lease;
    scene.queue.bury(&lease, "no").await.unwrap();
    let record = async |scene: &mut Scene| scene.command("HGETALL @repeat:report").await.to_string();
    let before = record(&mut scene).await;
    scene.queue.revive(lease.id()).await.unwrap();
    scene.queue.remove(lease.id()).await.unwrap();
    assert_eq!(record(&mut scene).await, before);
}

#[tokio::test]
async fn a_recurring_job_that_is_removed_while_its_job_runs_leaves_that_job_to_end() {
    let mut scene = standing("removed", Overlap::Wait).await;
    fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await;
    let lease = scene.claim().await.lease;
    scene.queue.recurring().remove("report").await.unwrap();
    scene.expire(lease.id()).await;
    assert_eq!(scene.queue.reap(Some(3)).await.unwrap().recovered, [lease.id()]);
    let lease = scene.claim().await.lease;
    scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    assert_eq!(scene.queue.state(lease.id()).await.unwrap(), Some(JobState::Finished));
    assert_eq!(scene.command("EXISTS @de:report.5000").await.int(), 0);
}

#[tokio::test]
async fn a_job_of_a_slot_expires_after_its_own_time() {
    let mut scene = scene("expires").await;
    let recurring = scene.queue.recurring();
    let upsert = recurring.upsert("report", Schedule::every(MINUTE), Work { n: 7 }).group("a").priority(3);
    upsert.expires_in(Duration::from_secs(5)).header("tenant", "north").await.unwrap();
    stand_at(&mut scene, "5000").await;
    let before = scene.now().await;
    fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await;
    let after = scene.now().await;
    let expires = scene.command(&format!("HGET @job:{} expires", IDS[0])).await.text().parse::<f64>().unwrap();
    crate::scene::assert_after(expires, Duration::from_secs(5), before, after);
    assert_eq!(scene.command(&format!("ZSCORE @g:a:pending {}", IDS[0])).await.text(), "3");
    let headers = scene.command(&format!("HGET @job:{} headers", IDS[0])).await;
    assert_eq!(headers.text(), r#"{"emq-slot":"5000","tenant":"north"}"#);
}

#[tokio::test]
async fn the_job_that_has_had_the_key_of_a_slot_is_the_one_that_the_next_waits_for() {
    for overlap in [Overlap::Skip, Overlap::Wait] {
        let mut scene = standing("holder", overlap).await;
        // Somebody has enqueued a job with the key of the slot, and it runs.
        let holder = scene.queue.enqueue(Work { n: 1 }).unique("report.5000").await.unwrap().id();
        let lease = scene.claim().await.lease;
        assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await, ["FIRED 0"]);
        assert_eq!(scene.command("HGET @repeat:report job").await.text(), holder.as_str());
        let reply = fire(&mut scene, &format!("report 65000 125000 1 {} 65000", IDS[1])).await;
        assert_eq!(reply, [if overlap == Overlap::Skip { "FIRED 0" } else { "HELD" }]);
        scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
        let slot = if overlap == Overlap::Skip { "125000" } else { "65000" };
        assert_eq!(fire(&mut scene, &format!("report {slot} 185000 1 {} {slot}", IDS[2])).await, ["FIRED 1"]);
    }
}

/// A recurring job whose slot `65000` waits for the end of the job of `5000`, which is claimed.
async fn held(label: &str) -> (Scene, emq::Lease) {
    let mut scene = standing(label, Overlap::Wait).await;
    assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await, ["FIRED 1"]);
    let lease = scene.claim().await.lease;
    assert_eq!(fire(&mut scene, &format!("report 65000 125000 1 {} 65000", IDS[1])).await, ["HELD"]);
    scene.command("DEL @marker").await;
    (scene, lease)
}

#[tokio::test]
async fn whatever_ends_the_job_that_a_slot_waits_for_has_a_worker_look_at_once() {
    for how in ["complete", "bury", "cancel", "reap", "remove"] {
        let (mut scene, lease) = held("ends").await;
        let queue = scene.queue.clone();
        match how {
            "complete" => drop(queue.complete(&lease, emq::Completion::empty()).await.unwrap()),
            "bury" => drop(queue.bury(&lease, "no").await.unwrap()),
            "reap" => {
                scene.expire(lease.id()).await;
                assert_eq!(queue.reap(Some(1)).await.unwrap().dead, [lease.id()]);
            }
            _ => {
                queue.retry(&lease, MINUTE, "no").await.unwrap();
                assert_eq!(scene.command("EXISTS @held").await.int(), 0, "it runs again, and hasn't ended");
                scene.command("DEL @marker").await;
                if how == "cancel" {
                    queue.cancel(lease.id()).await.unwrap();
                } else {
                    queue.remove(lease.id()).await.unwrap();
                }
            }
        }
        assert_eq!(scene.command("ZCARD @marker").await.int(), 1, "{how}");
        let batch = scene.claimer().claim(1).await.unwrap();
        assert_eq!((batch.jobs.len(), batch.next_event), (0, Some(Duration::ZERO)), "{how}");
        // What a worker does then.
        scene.queue.promote().await.unwrap();
        assert_eq!(fire(&mut scene, &format!("report 65000 125000 1 {} 65000", IDS[1])).await, ["FIRED 1"], "{how}");
        assert_eq!(scene.command("EXISTS @held @next:report.5000").await.int(), 0, "{how}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_wait_when_another_implementation_has_ended_the_job() {
    let (mut scene, lease) = held("peer").await;
    assert_eq!(scene.command("GET @next:report.5000").await.text(), "slot");
    scene.command(&format!("ZREM @active {}", lease.id())).await;
    scene.command(&format!("DEL @job:{} @de:report.5000", lease.id())).await;
    assert_eq!(fire(&mut scene, &format!("report 65000 125000 1 {} 65000", IDS[1])).await, ["FIRED 1"]);
    assert_eq!(scene.command("EXISTS @next:report.5000").await.int(), 0);
}

#[tokio::test]
async fn a_job_that_is_parked_behind_that_of_a_slot_goes_first() {
    let mut scene = standing("parked", Overlap::Wait).await;
    fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await;
    let lease = scene.claim().await.lease;
    let follows = emq::Unique::key("report.5000").then_once();
    let parked = scene.queue.enqueue(Work { n: 1 }).unique(follows).await.unwrap();
    assert!(matches!(parked.admission(), emq::Admission::Parked(_)));
    assert_eq!(fire(&mut scene, &format!("report 65000 125000 1 {} 65000", IDS[1])).await, ["HELD"]);
    scene.queue.complete(&lease, emq::Completion::empty()).await.unwrap();
    assert_eq!(scene.claim().await.lease.id(), parked.id());
}

#[tokio::test]
async fn a_slot_that_comes_again_gets_no_second_job_while_the_first_is_unfinished() {
    let mut scene = standing("again", Overlap::Allow).await;
    assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[0])).await, ["FIRED 1"]);
    // Another schedule begins with the slot that the one before has had.
    stand_at(&mut scene, "5000").await;
    assert_eq!(fire(&mut scene, &format!("report 5000 65000 1 {} 5000", IDS[1])).await, ["FIRED 0"]);
    assert_eq!(scene.queue.counts().await.unwrap().pending, 1);
    assert_eq!(scene.command("HGET @repeat:report job").await.text(), IDS[0]);
    assert_eq!(scene.command("HGET @repeat:report next").await.text(), "65000");
}
