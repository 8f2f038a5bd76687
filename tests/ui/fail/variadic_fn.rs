use emq::job;

#[job]
async fn send(to: String, rest: ...) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
