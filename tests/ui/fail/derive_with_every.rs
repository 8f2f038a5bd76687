use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(every = "10m")]
struct Report {}

fn main() {
    let _ = <Report as Job>::NAME;
}
