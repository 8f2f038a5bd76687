use emq::job;

#[job]
async fn send(to: impl Into<String>) {
    let _ = to.into();
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
