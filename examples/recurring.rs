//! Recurring jobs: one that the attribute declares, and one that is registered while the program runs.
//!
//! ```text
//! cargo run -p emq-examples --example recurring
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. Ctrl-C ends it, and so does a number of ticks after
//! the name of the program. Start it twice: each slot still runs once.

use std::time::{Duration, SystemTime};

use emq::{Client, JobContext, Missed, Overlap, Recurrence, Schedule, State, Worker, job, shutdown_signal};
use tokio::sync::mpsc;

/// Tells that a slot ran.
#[derive(Clone)]
struct Ran(mpsc::UnboundedSender<()>);

/// Every other second, by the server's clock.
#[job(queue = "recurring", every = "2s", missed = skip, overlap = skip)]
async fn tick(ctx: JobContext, State(ran): State<Ran>) {
    println!("tick: its slot was {:?} ago", late(&ctx));
    let _ = ran.0.send(());
}

#[job(queue = "recurring")]
async fn report(of: String, ctx: JobContext) {
    println!("the report of {of}: its slot was {:?} ago", late(&ctx));
}

/// How long ago the slot of this run was, as far as the clocks agree.
fn late(ctx: &JobContext) -> Option<Duration> {
    SystemTime::now().duration_since(ctx.slot()?).ok()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let ticks = std::env::args().nth(1).and_then(|ticks| ticks.parse().ok()).unwrap_or(usize::MAX);
    let client = Client::connect(url).await?;

    // As often as you like: the same again changes nothing.
    let recurring = client.recurring("recurring")?;
    let workdays = Schedule::cron("0 9 * * MON-FRI").in_zone("Europe/Berlin");
    let workdays = Recurrence::new(workdays).missed(Missed::Once).overlap(Overlap::Wait);
    recurring.upsert("sales-report", workdays, ReportJob { of: "sales".into() }).await?;
    for job in recurring.list(0, 100).await? {
        println!("{} runs {:?}, next at {:?}", job.name, job.job, job.next);
    }
    // Not at nine, but now.
    recurring.run_now("sales-report").await?;

    let (ran, mut runs) = mpsc::unbounded_channel();
    let worker = Worker::builder(&client).state(Ran(ran)).register::<TickJob>().register::<ReportJob>().build()?;
    let enough = async {
        for _ in 0..ticks {
            runs.recv().await;
        }
    };
    worker
        .run_until(async {
            tokio::select! {
                () = shutdown_signal() => {}
                () = enough => {}
            }
        })
        .await?;
    Ok(())
}
