use emq::job;

#[job]
async fn send(to: &[u8]) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
