use emq::Job;

#[derive(Job)]
struct SendEmail {
    to: String,
}

fn main() {}
