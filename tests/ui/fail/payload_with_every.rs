use emq::{Job, job};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
struct Report {}

#[job(every = "10m")]
async fn report(#[payload] report: Report) {
    let _ = report;
}

fn main() {}
