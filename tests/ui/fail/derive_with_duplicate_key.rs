use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(queue = "mail")]
#[job(queue = "post")]
struct SendEmail {
    to: String,
}

fn enqueue<J: Job>() {}

fn main() {
    enqueue::<SendEmail>();
}
