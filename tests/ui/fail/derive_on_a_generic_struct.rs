use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
struct SendEmail<T> {
    to: T,
}

fn main() {}
