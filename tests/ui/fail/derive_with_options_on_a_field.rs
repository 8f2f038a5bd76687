use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
struct SendEmail {
    #[job(unique)]
    to: String,
}

fn enqueue<J: Job>() {}

fn main() {
    enqueue::<SendEmail>();
}
