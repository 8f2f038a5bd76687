use emq::job;

#[job(backoff = fixed("5s", jitter = 1.5))]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
