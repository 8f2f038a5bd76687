//! The portal: reads the file, enqueues, has the workers work, and reports.

use std::{env, path::Path, time::Duration};

use emq::{BoxError, Client, Draft, Place, Queue, QueueName, Ticket, testing::TestServer};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    csv_file::{self, Roster},
    job::EnrollJob,
    progress::Progress,
    report::Report,
    school::School,
    supervisor::{Strikes, Supervisor},
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/enrollments.csv");

/// How long the workers may take; about four times what they need.
const PATIENCE: Duration = Duration::from_secs(120);

/// Answers whether every enrolment happened once.
pub(crate) async fn run(seed: u64) -> Result<bool, BoxError> {
    let start = Instant::now();
    let roster = csv_file::read(Path::new(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    println!("read {} rows of {FILE}", roster.rows);
    for refused in &roster.refused {
        println!("  line {}: {}", refused.line, refused.reason);
    }

    let (url, _server) = server().await?;
    let client = Client::connect(&url).await?;
    // Of its own for each run: a run leaves nothing that the next could stumble over, and touches nothing of others.
    let queue = client.queue(format!("enrollments-{:08x}", rand::random::<u32>()))?;
    // All before the first worker starts: a row is a duplicate for as long as the job of its first occurrence waits or
    // runs.
    let tickets = enqueue(&client, queue.name(), &roster).await?;
    let enqueued = tickets.iter().filter(|ticket| !ticket.is_duplicate()).count();
    println!("enqueued {enqueued} of {} jobs into the queue {}", tickets.len(), queue.name());

    let folder = TempDir::with_prefix("emq-enrollment-")?;
    let database = folder.path().join("school.sqlite");
    let school = School::open(&database)?;
    println!("three workers enrol into {}; one is killed about once a second (seed {seed})", database.display());
    let mut supervisor = Supervisor::start(&url, queue.name().as_str(), &database, seed)?;
    let strikes = supervisor.strikes();
    let in_time = tokio::select! {
        never = supervisor.harass() => match never? {},
        in_time = all_ended(&queue, enqueued as u64, &strikes) => in_time?,
    };
    supervisor.stop().await?;

    for letter in queue.list(Place::Dead, 0, 10).await? {
        let error = queue.get(letter.id).await?.and_then(|job| job.last_error);
        println!("dead letter {}: {}", letter.id, error.unwrap_or_default());
    }
    let report = Report::draw_up(&roster, &tickets, &strikes, &school).await?;
    println!("\n{report}\nafter {:.0?}", start.elapsed());
    if !in_time {
        println!("the queue isn't empty after {PATIENCE:?}: {:?}", queue.counts().await?);
    }
    client.close().await;
    let clean = in_time && report.is_clean();
    if !clean {
        println!("the database is kept in {}", folder.keep().display());
    }
    Ok(clean)
}

/// The server in `EMQ_URL`, or else a private one that ends with what is answered here.
async fn server() -> Result<(String, Option<TestServer>), BoxError> {
    if let Ok(url) = env::var("EMQ_URL") {
        println!("using the server in EMQ_URL");
        return Ok((url, None));
    }
    let server = TestServer::start().await?;
    Ok((server.url(), Some(server)))
}

async fn enqueue(client: &Client, queue: &QueueName, roster: &Roster) -> Result<Vec<Ticket<EnrollJob>>, BoxError> {
    let drafts = roster.jobs.iter().cloned().map(|job| Draft::of(job).queue(queue.as_str()));
    Ok(client.enqueue_many(drafts).await?)
}

/// Waits until no job of the queue is left to do, and answers whether that came in time.
async fn all_ended(queue: &Queue, enqueued: u64, strikes: &Strikes) -> Result<bool, BoxError> {
    let deadline = Instant::now() + PATIENCE;
    let mut progress = Progress::new(enqueued);
    loop {
        let left = queue.counts().await?.unfinished();
        progress.show(enqueued - left, format!("kills: {}, freezes: {}", strikes.kills(), strikes.freezes()));
        if left == 0 || Instant::now() > deadline {
            progress.finish();
            return Ok(left == 0);
        }
        sleep(Duration::from_millis(100)).await;
    }
}
