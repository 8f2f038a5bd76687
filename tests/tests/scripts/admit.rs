use emq::Draft;
use support::Reply;

use crate::scene::{Scene, Work, scene, script};

const FIRST: &str = "JOB0JZGkP9AMvv";
const SECOND: &str = "JOB0JZGkP9AMvw";

/// Calls the script by itself, with an id, a name and a payload for each job.
async fn admit(scene: &mut Scene, jobs: &[[&str; 3]]) -> Reply {
    let keys = ["job:", "pending", "done", "marker"].map(|key| format!("emq:{{{}}}:{key}", scene.queue.name()));
    let script = script("admit");
    let mut args = vec!["EVAL", &script, "4"];
    args.extend(keys.iter().map(String::as_str));
    args.extend(jobs.iter().flatten());
    scene.raw.command(&args).await
}

#[tokio::test]
async fn a_plain_job_is_written_as_by_the_long_form() {
    let mut scene = scene("admit").await;
    let id = FIRST.parse().unwrap();
    scene.show(id);
    let short = scene.queue.enqueue(Work { n: 7 }).id(id).into_future();
    let (ticket, short) = scene.changes(short).await;
    ticket.unwrap();
    scene.command(&format!("DEL @pending @marker @job:{id}")).await;
    // One in the call that isn't plain makes it the long one.
    let queue = scene.queue.name().to_string();
    let drafts = [Draft::of(Work { n: 7 }).id(id), Draft::of(Work { n: 8 }).id(SECOND.parse().unwrap()).group("north")];
    let long = scene.client.enqueue_many(drafts.map(|draft| draft.queue(&queue))).into_future();
    let (tickets, mut long) = scene.changes(long).await;
    tickets.unwrap();
    long.retain(|line| line.contains("J1") || line.contains("marker"));
    assert_eq!(short, long);
}

#[tokio::test]
async fn all_that_are_new_have_one_answer_and_else_each_has_its_own() {
    let mut scene = scene("admit").await;
    let [first, second] = [[FIRST, "work", "{}"], [SECOND, "work", "{}"]];
    assert_eq!(admit(&mut scene, &[first, second]).await.text(), "ENQUEUED");
    let third = ["JOB0JZGkP9AMvx", "work", "{}"];
    let replies = admit(&mut scene, &[first, third, third, [SECOND, "work", "another"]]).await;
    let replies: Vec<_> = replies.items().iter().map(Reply::text).collect();
    let expected = [
        format!("DUPLICATE {FIRST}  "),
        "ENQUEUED".into(),
        format!("DUPLICATE {}  ", third[0]),
        format!("CONFLICT {SECOND}  "),
    ];
    assert_eq!(replies, expected);
    assert_eq!(scene.command("ZCARD @pending").await.int(), 3);
}

#[tokio::test]
async fn an_id_that_waits_without_a_row_is_admitted_and_only_once() {
    let mut scene = scene("admit").await;
    scene.command(&format!("ZADD @pending 5 {FIRST}")).await;
    let [first, second] = [[FIRST, "work", "{}"], [SECOND, "work", "{}"]];
    let replies = admit(&mut scene, &[first, second, [FIRST, "work", "another"]]).await;
    let replies: Vec<_> = replies.items().iter().map(Reply::text).collect();
    assert_eq!(replies, ["ENQUEUED".into(), "ENQUEUED".into(), format!("CONFLICT {FIRST}  ")]);
    assert_eq!(scene.command(&format!("HGET @job:{FIRST} payload")).await.text(), "{}");
    assert_eq!(scene.command(&format!("ZSCORE @pending {FIRST}")).await.text(), "0");
}

#[tokio::test]
async fn what_has_ended_keeps_its_id_until_it_may_be_forgotten() {
    let mut scene = scene("admit").await;
    scene.command(&format!("ZADD @done 1 {FIRST} 99999999999999 {SECOND}")).await;
    let replies = admit(&mut scene, &[[FIRST, "work", "{}"], [SECOND, "work", "{}"]]).await;
    let replies: Vec<_> = replies.items().iter().map(Reply::text).collect();
    assert_eq!(replies, ["ENQUEUED".into(), format!("DUPLICATE {SECOND}  ")]);
    assert_eq!(
        scene.command("ZRANGE @done 0 -1").await.to_string(),
        scene.command("ZRANGE @done -1 -1").await.to_string()
    );
    assert_eq!(scene.command("ZRANGE @pending 0 -1").await.items().len(), 1);
}

#[tokio::test]
async fn who_finds_all_its_jobs_there_sets_no_marker() {
    let mut scene = scene("admit").await;
    let id = scene.enqueue().await;
    scene.command("DEL @marker").await;
    let again = scene.queue.enqueue(Work { n: 0 }).id(id).into_future();
    assert!(scene.unchanged(again).await.unwrap().is_duplicate());
}

#[tokio::test]
async fn an_id_of_another_kind_is_refused_with_the_whole_call() {
    let mut scene = scene("admit").await;
    for bad in ["USR0KHTOWnGLuC", "", "JOB", "JOB0JZGkP9AMvvv", "job0JZGkP9AMvv"] {
        let reply = admit(&mut scene, &[[FIRST, "work", "{}"], [bad, "work", "{}"]]).await;
        assert!(reply.to_string().starts_with("(error) EMQKIND "), "{bad:?}: {reply}");
    }
    assert!(scene.dump().await.is_empty(), "the job before the bad one isn't admitted either");
}
