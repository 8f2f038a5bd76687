use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use emq::Schedule;
use support::Raw;

use crate::office::{Chore, Office, Task, notes};

#[tokio::test]
async fn each_slot_gets_one_job_while_workers_are_killed_and_started_again() {
    let office = Office::open("slots").await;
    let recurring = office.queue.recurring();
    let period = 50;
    let task = || Task { chore: Chore::Notes };
    recurring.upsert("tick", Schedule::every(Duration::from_millis(period)), task()).await.unwrap();
    let mut workers = [office.worker().await, office.worker().await];
    for round in 0..8 {
        let before = office.queue.counts().await.unwrap().completed;
        office.until(async || office.queue.counts().await.unwrap().completed > before + 5 + round % 3).await;
        let place = round as usize % 2;
        let killed = std::mem::replace(&mut workers[place], office.worker().await);
        killed.kill().await;
        // What a new worker of each deploy does.
        recurring.upsert("tick", Schedule::every(Duration::from_millis(period)), task()).await.unwrap();
    }
    recurring.remove("tick").await.unwrap();
    office.until(async || office.queue.counts().await.unwrap().unfinished() == 0).await;

    let mut raw = Raw::connect(support::server().await).await;
    let noted = raw.command(&["LRANGE", &notes(office.queue.name().as_str()), "0", "-1"]).await;
    let mut jobs: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in noted.items() {
        let (slot, id) = line.text().split_once(' ').unwrap();
        jobs.entry(slot.parse().unwrap()).or_default().insert(id.to_owned());
    }
    let twice: Vec<_> = jobs.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let slots: Vec<u64> = jobs.into_keys().collect();
    assert!(slots.len() > 40, "{}", slots.len());
    let gaps: Vec<_> = slots.windows(2).filter(|pair| pair[1] - pair[0] != period).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    for worker in workers {
        worker.kill().await;
    }
}
