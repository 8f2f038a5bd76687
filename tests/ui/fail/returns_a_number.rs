use emq::job;

#[job]
async fn send(to: String) -> u64 {
    let _ = to;
    1
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
