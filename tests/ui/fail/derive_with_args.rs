use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(args = Send)]
struct SendEmail {
    to: String,
}

fn enqueue<J: Job>() {}

fn main() {
    enqueue::<SendEmail>();
}
