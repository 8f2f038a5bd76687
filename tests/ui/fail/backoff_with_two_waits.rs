use emq::job;

#[job(backoff = exponential("1s", "10m"))]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
