use emq::job;

#[job]
struct SendJob {
    to: String,
}

fn main() { let _ = SendJob { to: String::new() }.to; }
