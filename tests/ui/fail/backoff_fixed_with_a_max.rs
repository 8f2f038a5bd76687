use emq::job;

#[job(backoff = fixed("5s", max = "10m"))]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
