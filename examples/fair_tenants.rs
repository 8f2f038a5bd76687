//! Tenants share a queue: one with many jobs doesn't keep the others from theirs.
//!
//! North enqueues sixty jobs, then the others come with a few each. East has paid for three jobs in a turn, and West may
//! have one running at a time. The chart has a line per tenant and a column per job, in the order in which they ran.
//!
//! ```text
//! cargo run -p emq-examples --example fair_tenants
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its jobs have.

use std::{
    env,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use emq::{Client, Draft, JobContext, State, Worker, job};
use tokio::time::sleep;

/// The tenants in the order in which they come, and how many jobs they have.
const TENANTS: [(&str, u32); 4] = [("north", 60), ("east", 18), ("south", 6), ("west", 6)];

/// Which tenants were served, in order.
#[derive(Clone, Default)]
struct Served(Arc<Mutex<Vec<String>>>);

/// Renders a report of a tenant.
#[job(queue = "reports")]
async fn render(page: u32, State(served): State<Served>, ctx: JobContext) {
    served.0.lock().unwrap().push(ctx.group().unwrap_or("-").to_owned());
    sleep(Duration::from_millis(2 + u64::from(page % 3))).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;
    // Of its own for each run, so that the jobs are this run's.
    let queue = client.queue(format!("fair-tenants-{}", std::process::id()))?;
    queue.lane("east")?.set_weight(3).await?;
    queue.lane("west")?.set_concurrency(1).await?;
    for (tenant, jobs) in TENANTS {
        let drafts = (0..jobs).map(|page| Draft::of(RenderJob { page }).group(tenant));
        queue.enqueue_many(drafts).await?;
    }
    println!("before: {}", waiting(&queue).await?);

    let served = Served::default();
    let name = queue.name().as_str();
    let worker = Worker::builder(&client).state(served.clone()).register::<RenderJob>().queue(name).concurrency(2);
    let worker = worker.build()?;
    worker
        .run_until(async {
            while queue.counts().await.is_ok_and(|counts| counts.unfinished() > 0) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await?;
    println!("after:  {}\n", waiting(&queue).await?);

    client.close().await;

    let served = served.0.lock().unwrap();
    for (tenant, jobs) in TENANTS {
        let chart: String = served.iter().map(|of| if of == tenant { '#' } else { '.' }).collect();
        println!("{tenant:>6} {chart} {jobs}");
    }
    Ok(())
}

/// The lanes with what waits there.
async fn waiting(queue: &emq::Queue) -> Result<String, emq::CallError> {
    let lanes = queue.lanes(0, 10).await?;
    let shown: Vec<_> = lanes.iter().map(|lane| format!("{} {}", lane.name, lane.waiting)).collect();
    Ok(if shown.is_empty() { "nobody waits".into() } else { shown.join(", ") })
}
