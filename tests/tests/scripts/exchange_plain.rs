use std::time::Duration;

use emq::{Draft, Event};
use support::Reply;
use tokio::time::timeout;

use crate::scene::{Scene, Work, scene, script};

/// Calls a script as the request 1 of the worker `w`, which claims up to `n`.
async fn call(scene: &mut Scene, name: &str, keys: &str, n: usize, more: &[&str]) -> Reply {
    let prefix = format!("emq:{{{}}}:", scene.queue.name());
    let keys: Vec<_> = keys.split_whitespace().map(|key| key.replace('@', &prefix)).collect();
    let mut args = vec!["EVAL".to_owned(), script(name), keys.len().to_string()];
    args.extend(keys);
    args.extend([n.to_string(), "30000".into(), "w".into(), "1".into()]);
    args.extend(more.iter().map(ToString::to_string));
    scene.raw.command(&args).await
}

/// Completes these, and claims.
async fn short(scene: &mut Scene, done: &[&str], n: usize) -> Reply {
    let keys = "@job: @pending @active @schedule @done @marker @meta @claims @metrics:completed @events @";
    call(scene, "exchange_plain", keys, n, &[&["3600000"], done].concat()).await
}

async fn claim_plain(scene: &mut Scene, n: usize) -> Reply {
    short(scene, &[], n).await
}

async fn claim(scene: &mut Scene, n: usize) -> Reply {
    let keys = "@job: @pending @active @schedule @dead @marker @meta @claims @metrics:failed @events @";
    call(scene, "claim", keys, n, &[]).await
}

/// As [`short`], of what the short form does.
async fn exchange(scene: &mut Scene, done: &[&str], n: usize) -> Reply {
    let keys = "@job: @pending @active @schedule @dead @done @marker @meta @claims @metrics:completed @metrics:failed \
                @events @";
    let count = done.len().to_string();
    call(scene, "exchange", keys, n, &[&["1", "3600000", "", "1", count.as_str()], done].concat()).await
}

/// Asserts that the short form leaves it to the long one, and has written nothing.
async fn refuses(scene: &mut Scene, why: &str) {
    let before = scene.dump().await;
    assert!(matches!(claim_plain(scene, 10).await, Reply::Nil), "{why}");
    assert_eq!(scene.dump().await.lines(), before.lines(), "{why}");
}

/// What stands there, but for times: scores, and those in the notes of claims.
fn without_times(lines: &[String]) -> Vec<String> {
    let digits_end = |word: &str| word.chars().filter(char::is_ascii_digit).count() >= 13;
    let cut = |line: &String| line.split([' ', '|']).filter(|word| !digits_end(word)).collect::<Vec<_>>().join(" ");
    lines.iter().map(cut).collect()
}

#[tokio::test]
async fn plain_jobs_are_handed_out_and_written_as_by_the_long_form() {
    let mut dumps = Vec::new();
    let mut answers = Vec::new();
    for is_short in [true, false] {
        let mut scene = scene("plain").await;
        let ids = ["JOB0JZGkP9AMvv", "JOB0JZGkP9AMvw", "JOB0JZGkP9AMvx"];
        for id in ids {
            let draft = Draft::of(Work { n: 7 }).id(id.parse().unwrap());
            scene.enqueue_as(draft).await;
        }
        scene
            .enqueue_as(Draft::of(Work { n: 8 }).id("JOB0JZGkP9AMvy".parse().unwrap()).delay(Duration::from_secs(9)))
            .await;
        scene.command("DEL @marker").await;
        for n in [2, 10] {
            let reply = if is_short { claim_plain(&mut scene, n).await } else { claim(&mut scene, n).await };
            let items = reply.items();
            let jobs: Vec<_> = items[5].items().iter().map(|part| part.text().to_owned()).collect();
            assert!(n == 2 || (8_000..=9_000).contains(&items[2].int()), "the next falls due: {reply}");
            answers.push((is_short, items[1].int(), jobs));
            // Another request.
            scene.command("DEL @claims").await;
        }
        let prefix = format!("emq:{{{}}}:", scene.queue.name());
        let dump = without_times(&scene.dump().await.lines());
        dumps.push(dump.iter().map(|line| line.replace(&prefix, "@")).collect::<Vec<_>>());
    }
    assert_eq!(dumps[0], dumps[1]);
    let (short, long) = answers.split_at(2);
    assert!(short.iter().zip(long).all(|(short, long)| (short.1, &short.2) == (long.1, &long.2)), "{answers:?}");
    assert_eq!((short[0].1, short[0].2.len(), short[1].1, short[1].2.len()), (1, 8, 0, 4), "two, and one is left");
}

#[tokio::test]
async fn what_it_took_is_found_by_the_long_form() {
    let mut scene = scene("plain").await;
    let id = scene.enqueue().await;
    let first = claim_plain(&mut scene, 1).await;
    assert_eq!(first.items()[5].items()[0].text(), id.as_str());
    refuses(&mut scene, "a request that was carried out").await;
    let again = claim(&mut scene, 1).await;
    assert_eq!(again.items()[5], first.items()[5], "the same job under the same token");
}

#[tokio::test]
async fn where_nothing_is_it_says_so() {
    let mut scene = scene("plain").await;
    let reply = claim_plain(&mut scene, 10).await;
    assert_eq!((reply.items()[1].int(), reply.items()[2].int(), reply.items()[5].items().len()), (0, -1, 0));
    assert!(scene.dump().await.is_empty());
}

#[tokio::test]
async fn whatever_isnt_plain_is_left_to_the_long_form() {
    for (settings, why) in [
        ("HSET @meta paused 1", "a pause"),
        ("HSET @meta held 99999999999999", "a queue that is held back"),
        ("HSET @meta concurrency 1", "a limit of active jobs"),
        ("HSET @meta rate '1 1000 1'", "a rate"),
        ("RPUSH @ring north", "a lane"),
        ("ZADD @held 1 north", "a lane that is held back"),
        ("ZADD @repeat 1 nightly", "a recurring job"),
        ("ZADD @pending 0 JOB0JZGkP9AMvz", "an id without a row"),
        ("ZADD @pending 0 nonsense", "an id that is none"),
    ] {
        let mut scene = scene("plain").await;
        scene.enqueue().await;
        scene.command(settings).await;
        refuses(&mut scene, why).await;
    }
    for (draft, why) in [
        (Draft::of(Work { n: 7 }).unique("k"), "a deduplication key"),
        (Draft::of(Work { n: 7 }).max_attempts(2), "a limit of attempts"),
        (Draft::of(Work { n: 7 }).header("tenant", "north"), "headers"),
        (Draft::of(Work { n: 7 }).expires_in(Duration::from_secs(9)), "an expiry"),
    ] {
        let mut scene = scene("plain").await;
        scene.enqueue_as(draft).await;
        refuses(&mut scene, why).await;
    }
    let mut scene = scene("plain").await;
    let lease = scene.claimed().await;
    scene.queue.release(&lease).await.unwrap();
    refuses(&mut scene, "a job that was claimed before").await;
}

#[tokio::test]
async fn a_place_of_another_type_is_an_error_and_no_job_is_taken() {
    for place in ["pending", "active", "schedule", "claims", "meta"] {
        let mut scene = scene("plain").await;
        scene.enqueue().await;
        scene.command(&format!("DEL @{place}")).await;
        scene.command(&format!("SET @{place} text")).await;
        let before = scene.dump().await;
        let reply = claim_plain(&mut scene, 10).await;
        assert!(reply.is_error(), "{place}: {reply}");
        assert_eq!(scene.dump().await.lines(), before.lines(), "{place}");
    }
}

const IDS: [&str; 5] = ["JOB0JZGkP9AMvv", "JOB0JZGkP9AMvw", "JOB0JZGkP9AMvx", "JOB0JZGkP9AMvy", "JOB0JZGkP9AMvz"];

/// Five jobs, of which the first `claimed` are in hand.
async fn in_hand(claimed: usize) -> Scene {
    let mut scene = scene("plain").await;
    for id in IDS {
        scene.enqueue_as(Draft::of(Work { n: 7 }).id(id.parse().unwrap())).await;
    }
    scene.command("DEL @marker").await;
    if claimed > 0 {
        assert_eq!(claim_plain(&mut scene, claimed).await.items()[5].items().len(), 4 * claimed);
        scene.command("DEL @claims").await;
    }
    scene
}

#[tokio::test]
async fn plain_jobs_are_completed_as_by_the_long_form() {
    for (done, n) in [(&IDS[..2], 2), (&IDS[..2], 3), (&IDS[..2], 10), (&IDS[..1], 1), (&IDS[1..2], 16)] {
        let mut dumps = Vec::new();
        let mut answers = Vec::new();
        for is_short in [true, false] {
            let mut scene = in_hand(2).await;
            scene.command(&format!("RPUSH @job:{}:logs line", done[0])).await;
            let mut events = scene.queue.events().await.unwrap();
            let answer = if is_short {
                short(&mut scene, done, n).await
            } else {
                let long = exchange(&mut scene, done, n).await;
                assert_eq!(long.items()[0].text(), "OK");
                Reply::Array(long.items()[1..].to_vec())
            };
            for id in done {
                let event = timeout(Duration::from_secs(20), events.next()).await.unwrap().unwrap();
                assert!(matches!(event, Event::Completed { id: of, .. } if of.as_str() == *id), "{event:?}");
            }
            let next = answer.items()[2].int();
            assert!(next == -1 || (29_000..=30_000).contains(&next), "the first lease in hand: {answer}");
            answers.push((answer.items()[1].int(), answer.items()[5].to_string(), next == -1));
            let prefix = format!("emq:{{{}}}:", scene.queue.name());
            let dump = without_times(&scene.dump().await.lines());
            dumps.push(dump.iter().map(|line| line.replace(&prefix, "@")).collect::<Vec<_>>());
        }
        assert_eq!(dumps[0], dumps[1], "{done:?}, {n}");
        assert_eq!(answers[0], answers[1], "{done:?}, {n}");
    }
}

#[tokio::test]
async fn the_next_lease_that_ends_is_that_of_a_job_that_is_still_in_hand() {
    for (done, next) in [(IDS[1], 8_000..=9_000), (IDS[0], 29_000..=30_000)] {
        let mut scene = in_hand(2).await;
        let first = scene.command(&format!("ZSCORE @active {}", IDS[0])).await.text().parse::<u64>().unwrap();
        scene.command(&format!("ZADD @active {} {}", first - 21_000, IDS[0])).await;
        let reply = short(&mut scene, &[done], 16).await;
        assert!(next.contains(&reply.items()[2].int()), "{done}: {reply}");
    }
}

#[tokio::test]
async fn a_completion_is_remembered_as_by_the_long_form() {
    let mut scene = in_hand(2).await;
    short(&mut scene, &IDS[..1], 1).await;
    scene.command("DEL @claims").await;
    exchange(&mut scene, &IDS[1..2], 1).await;
    let mut scores = Vec::new();
    for id in &IDS[..2] {
        let score = scene.command(&format!("ZSCORE @done {id}")).await.text().parse::<f64>().unwrap();
        assert_eq!(score.fract(), 2.0 / 1024.0, "{score}");
        scores.push(score);
    }
    assert!((0.0..20_000.0).contains(&(scores[1] - scores[0])), "{scores:?}");
    let again = exchange(&mut scene, &IDS[..1], 1).await;
    assert_eq!(again.items()[0].items()[0].text(), "DONE", "a worker that repeats it is told so");
}

#[tokio::test]
async fn a_job_that_its_token_does_not_hold_is_left_to_the_long_form_with_all_others() {
    for (change, why) in [
        ("HSET @job:JOB0JZGkP9AMvw attempts 2", "claimed again"),
        ("ZREM @active JOB0JZGkP9AMvw", "put back"),
        ("DEL @job:JOB0JZGkP9AMvw", "gone"),
    ] {
        let mut scene = in_hand(2).await;
        scene.command(change).await;
        let before = scene.dump().await;
        assert!(matches!(short(&mut scene, &IDS[..2], 2).await, Reply::Nil), "{why}");
        assert_eq!(scene.dump().await.lines(), before.lines(), "{why}");
    }
    let mut scene = in_hand(2).await;
    let before = scene.dump().await;
    assert!(matches!(short(&mut scene, &[IDS[0], IDS[0]], 2).await, Reply::Nil), "named twice");
    assert_eq!(scene.dump().await.lines(), before.lines());
}

#[tokio::test]
async fn a_place_of_another_type_is_an_error_and_no_job_is_completed() {
    for place in ["pending", "active", "schedule", "done", "claims", "meta"] {
        let mut scene = in_hand(2).await;
        scene.command(&format!("DEL @{place}")).await;
        scene.command(&format!("SET @{place} text")).await;
        let before = scene.dump().await;
        let reply = short(&mut scene, &IDS[..2], 16).await;
        assert!(reply.is_error(), "{place}: {reply}");
        assert_eq!(scene.dump().await.lines(), before.lines(), "{place}");
    }
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_found_by_the_long_form() {
    let mut scene = in_hand(2).await;
    let first = short(&mut scene, &IDS[..2], 2).await;
    let before = scene.dump().await;
    assert!(matches!(short(&mut scene, &IDS[..2], 2).await, Reply::Nil));
    assert_eq!(scene.dump().await.lines(), before.lines());
    let again = exchange(&mut scene, &IDS[..2], 2).await;
    let words: Vec<_> = again.items()[0].items().iter().map(Reply::text).collect();
    assert_eq!(words, ["DONE", "DONE"]);
    assert_eq!(again.items()[6], first.items()[5], "the same jobs under the same tokens");
}
