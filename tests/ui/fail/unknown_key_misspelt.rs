use emq::job;

#[job(timout = "30s")]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
