use emq::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
enum SendEmail {
    Now,
}

fn main() {}
