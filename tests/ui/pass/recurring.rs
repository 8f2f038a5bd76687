//! A job says when it recurs, and nothing has to be given to it.

use std::time::Duration;

use emq::{Handler, Job, JobContext, Missed, Overlap, Recurrence, Schedule, State, job};

#[job(cron = "0 9 * * MON-FRI", tz = "Europe/Berlin", missed = once, overlap = wait)]
async fn report(ctx: JobContext, State(name): State<String>) {
    let _ = (ctx.slot(), name);
}

#[job(every = "10m", missed = backfill(3), overlap = skip)]
async fn sweep(#[serde(default)] limit: u32, #[serde(default)] of: Option<String>) {
    let _ = (limit, of);
}

#[job(every = "1h 30m", missed = skip, overlap = allow)]
async fn r#loop() {}

fn recurs<J: Handler<String>>() -> Option<Recurrence> {
    J::recurrence()
}

fn main() {
    let workdays = Schedule::cron("0 9 * * MON-FRI").in_zone("Europe/Berlin");
    assert_eq!(recurs::<ReportJob>(), Some(Recurrence::new(workdays).missed(Missed::Once).overlap(Overlap::Wait)));
    let often = Schedule::every(Duration::from_secs(600));
    let often = Recurrence::new(often).missed(Missed::Backfill(3)).overlap(Overlap::Skip);
    assert_eq!(recurs::<SweepJob>(), Some(often));
    assert_eq!(recurs::<LoopJob>(), Some(Schedule::every(Duration::from_secs(5_400)).into()));
    assert_eq!(SweepJob { limit: 1, of: None }.unique_key(), None);
}
