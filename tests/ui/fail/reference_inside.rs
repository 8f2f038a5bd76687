use emq::job;

#[job]
async fn send(to: Option<&String>) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
