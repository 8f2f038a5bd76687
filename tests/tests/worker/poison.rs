//! Jobs that can't be run: what can't be decoded, what nobody knows, what has no name.

use emq::{JobId, JobState, Worker};
use support::Raw;

use crate::errand::{Errand, Other, Place, is_done, start, telling, tells};

/// A row as another program may have written it.
async fn row(place: &Place, raw: &mut Raw, id: &str, fields: &[(&str, &[u8])]) -> JobId {
    let key = place.key(format!("job:{id}"));
    let mut command: Vec<&[u8]> = vec![b"HSET", key.as_bytes(), b"state", b"pending", b"attempts", b"0"];
    for (name, value) in fields {
        command.extend([name.as_bytes(), *value]);
    }
    raw.command(&command).await;
    let (pending, marker) = (place.key("pending"), place.key("marker"));
    raw.command(&["ZADD", &pending, "0", id]).await;
    raw.command(&["ZADD", &marker, "0", "0"]).await;
    id.parse().unwrap()
}

#[tokio::test]
async fn a_payload_that_cant_be_decoded_is_buried_with_the_reason_and_its_neighbours_run() {
    let place = Place::shared("poison").await;
    let mut raw = place.raw().await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    let payloads: [&[u8]; 9] = [
        b"",
        b"{",
        b"{\"n\":",
        b"{\"n\":\"seven\"}",
        b"{\"n\":-1}",
        b"{}",
        b"null",
        b"\xff\xfe\x00\x01",
        &[b'['; 100_000],
    ];
    for (at, payload) in payloads.iter().enumerate() {
        let id = format!("JOB0000000000{}", at + 1);
        let id = row(&place, &mut raw, &id, &[("name", b"errand"), ("payload", payload)]).await;
        place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Dead)).await;
        let job = place.queue.get(id).await.unwrap().unwrap();
        let reason = job.last_error.unwrap();
        assert!(reason.starts_with("the payload can't be decoded as `errand`: "), "{reason}");
        assert_eq!((job.attempts, &job.payload[..]), (1, *payload), "it is kept as it came");
    }
    place.errand(7).await.unwrap();
    assert_eq!(told.next().await, 7);
    worker.stop().await;
}

#[tokio::test]
async fn a_name_that_no_handler_knows_goes_back_with_a_delay_and_costs_nothing() {
    let place = Place::shared("unknown").await;
    let worker =
        start(Worker::builder(&place.client).state(is_done()).register::<Errand>().queue(place.name()).concurrency(1));
    let id = place.queue.enqueue(Other { n: 0 }).max_attempts(1).await.unwrap().id();
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Scheduled)).await;
    let job = place.queue.get(id).await.unwrap().unwrap();
    assert_eq!((job.failures, job.stalled, job.last_error), (0, 0, None));
    let due: u64 = place.dump().await.get(&place.key("schedule"), &id.to_string()).unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(due > now + 1_000, "it isn't tried in a loop");
    // Those that are known go on.
    place.errand(0).await.unwrap();
    place.completed(1).await;
    assert_eq!(worker.stop().await.snoozed, 1);

    // The next version knows it.
    place.raw().await.command(&["ZADD", &place.key("schedule"), "0", &id.to_string()]).await;
    let worker = start(place.worker(is_done()));
    place.completed(2).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_job_under_an_old_name_is_run_by_the_one_that_was_called_so() {
    let place = Place::shared("renamed").await;
    let mut raw = place.raw().await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    row(&place, &mut raw, "JOB00000000001", &[("name", b"errand_of_old"), ("payload", b"{\"n\":7}")]).await;
    assert_eq!(told.next().await, 7);
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_row_without_a_name_goes_to_the_only_job_of_the_queue() {
    let place = Place::shared("nameless").await;
    let mut raw = place.raw().await;
    let (tell, mut told) = telling();
    let only = start(Worker::builder(&place.client).state(tells(&tell)).register::<Errand>().queue(place.name()));
    row(&place, &mut raw, "JOB00000000001", &[("payload", b"{\"n\":7}")]).await;
    assert_eq!(told.next().await, 7);
    place.completed(1).await;
    only.stop().await;

    // Of several, none is meant; it waits for a worker that has one.
    let several = start(place.worker(tells(&tell)));
    let id = row(&place, &mut raw, "JOB00000000002", &[("payload", b"{\"n\":8}")]).await;
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Scheduled)).await;
    several.stop().await;
    assert!(told.rest().is_empty());
}

#[tokio::test]
async fn fields_of_a_row_that_make_no_sense_dont_stop_a_job() {
    let place = Place::shared("odd").await;
    let mut raw = place.raw().await;
    let (tell, mut told) = telling();
    let worker = start(place.worker(tells(&tell)));
    let odd: [(&str, &[u8]); 6] = [
        ("name", b"errand"),
        ("payload", b"{\"n\":7}"),
        ("failures", b"many"),
        ("max_attempts", b"-3"),
        ("headers", b"not JSON"),
        ("stalled", b"\xff"),
    ];
    row(&place, &mut raw, "JOB00000000001", &odd).await;
    assert_eq!(told.next().await, 7);
    place.completed(1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_name_of_any_bytes_is_only_unknown() {
    let place = Place::shared("bytes").await;
    let mut raw = place.raw().await;
    let worker = start(place.worker(is_done()));
    let id = row(&place, &mut raw, "JOB00000000001", &[("name", b"\xff\x00\r\n"), ("payload", b"{}")]).await;
    place.until(async || place.queue.state(id).await.unwrap() == Some(JobState::Scheduled)).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_large_payload_arrives_whole() {
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Large {
        bytes: Vec<u8>,
    }
    impl emq::Job for Large {
        const NAME: &'static str = "large";
    }
    impl emq::Handler<()> for Large {
        async fn run(self, _: emq::inject::Scope<()>) -> Result<emq::Completion, emq::JobError> {
            emq::Completion::of(&self.bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>())
        }
    }
    let place = Place::shared("large").await;
    let worker = Worker::builder(&place.client).register::<Large>().queue(place.name()).build().unwrap();
    let handle = worker.handle();
    let run = tokio::spawn(worker.run());
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
    let id = place.queue.enqueue(Large { bytes }).await.unwrap().id();
    place.completed(1).await;
    let result = place.queue.get(id).await.unwrap().unwrap().result.unwrap();
    assert_eq!(result, sum.to_string());
    handle.shutdown();
    run.await.unwrap().unwrap();
}
