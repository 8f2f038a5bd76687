use emq::job;

#[job(backoff = exponential("1m", max = "10s"))]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
