use emq::{Completion, Draft};

use crate::scene::{Work, scene};

#[tokio::test]
async fn the_lane_with_the_most_waiting_jobs_is_in_front_and_an_empty_one_is_none() {
    let mut scene = scene("lanes").await;
    for lane in "abbbccd".chars() {
        scene.enqueue_as(Draft::of(Work { n: 0 }).group(lane)).await;
    }
    let shown = async |queue: &emq::Queue, offset, count| {
        let lanes = queue.lanes(offset, count).await.unwrap();
        lanes.iter().map(|lane| format!("{}{}", lane.name, lane.waiting)).collect::<Vec<_>>().join(" ")
    };
    let queue = scene.queue.clone();
    assert_eq!(shown(&queue, 0, 10).await, "b3 c2 d1 a1");
    assert_eq!(shown(&queue, 1, 2).await, "c2 d1");
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.pending, counts.lanes), (7, 4));
    let batch = scene.claimer().claim(4).await.unwrap();
    queue.complete(&batch.jobs[0].lease, Completion::empty()).await.unwrap();
    assert_eq!(shown(&queue, 0, 10).await, "b2 c1");
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.pending, counts.lanes, counts.active), (3, 2, 3));
}

#[tokio::test]
async fn what_others_have_put_into_a_lane_counts_when_a_job_of_it_moves() {
    let mut scene = scene("lanes").await;
    let id = scene.enqueue_as(Draft::of(Work { n: 0 }).group("a")).await;
    scene.command("ZADD @g:a:pending 0 JOB00000000001 0 JOB00000000002").await;
    scene.queue.remove(id).await.unwrap();
    let counts = scene.queue.counts().await.unwrap();
    assert_eq!((counts.pending, counts.lanes), (2, 1));
}
