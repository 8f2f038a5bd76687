//! Who holds a deduplication key, and who comes next: each line is an enqueue and what became of it.
//!
//! ```text
//! cargo run -p emq-examples --example unique
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{env, error::Error, sync::Arc, time::Duration};

use emq::{Admission, Client, JobError, JobId, State, Ticket, Unique, Worker, job};
use tokio::sync::{
    Semaphore,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

/// Tells which revision is being indexed, and lets that take as long as we want.
#[derive(Clone)]
struct Indexer {
    begun: UnboundedSender<u32>,
    ends: Arc<Semaphore>,
}

/// Brings an index up to date with a page.
#[job(queue = "unique-example")]
async fn index(revision: u32, State(indexer): State<Indexer>) -> Result<(), JobError> {
    indexer.begun.send(revision)?;
    indexer.ends.acquire().await?.forget();
    Ok(())
}

/// Waits until a revision is being indexed. Told here and not by the job, which may begin before its enqueue is answered.
async fn begins(revision: u32, revisions: &mut UnboundedReceiver<u32>) {
    assert_eq!(revisions.recv().await, Some(revision));
    println!("  indexing revision {revision}");
}

/// Says what became of an enqueue.
fn tell(revision: u32, ticket: &Ticket<IndexJob>) -> JobId {
    match ticket.admission() {
        Admission::Enqueued => println!("revision {revision}: a job of its own"),
        Admission::Duplicate(_) => println!("revision {revision}: a duplicate, nothing was added"),
        Admission::Replaced(_) => println!("revision {revision}: taken over by the job that waits"),
        Admission::Parked(_) => println!("revision {revision}: parked until the job that runs has ended"),
        other => println!("revision {revision}: {other:?}"),
    }
    ticket.id()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    let enqueue = |revision: u32, unique: Unique| client.enqueue(IndexJob { revision }).unique(unique);

    println!("No worker runs: the job that waits takes over what comes.");
    let latest = || Unique::key("page-7").replace_payload().then_once();
    let first = tell(1, &enqueue(1, latest()).await?);
    assert_eq!(tell(2, &enqueue(2, latest()).await?), first);
    tell(3, &enqueue(3, "page-7".into()).await?);

    let (begun, mut revisions) = unbounded_channel();
    let ends = Arc::new(Semaphore::new(0));
    let indexer = Indexer { begun, ends: ends.clone() };
    let worker = Worker::builder(&client).state(indexer).register::<IndexJob>().build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    begins(2, &mut revisions).await;

    println!("It runs: what comes now runs once after it, as the last one says.");
    let second = tell(4, &enqueue(4, latest()).await?);
    assert_eq!(tell(5, &enqueue(5, latest()).await?), second);
    ends.add_permits(1);
    begins(5, &mut revisions).await;
    // From here on they end at once.
    ends.add_permits(10);

    println!("At most one in an hour, done or not.");
    let key = format!("digest-{}", std::process::id());
    let window = || Unique::key(&key).for_(Duration::from_secs(60 * 60));
    tell(6, &enqueue(6, window()).await?);
    begins(6, &mut revisions).await;
    tell(7, &enqueue(7, window()).await?);

    println!("When nothing has come for a second, and after a minute in any case.");
    let settled = || Unique::key("page-8").until_start().debounce(Duration::from_secs(60));
    for revision in 8..=10 {
        tell(revision, &enqueue(revision, settled()).delay(Duration::from_secs(1)).await?);
    }
    begins(10, &mut revisions).await;

    handle.shutdown();
    running.await??;
    Ok(())
}
