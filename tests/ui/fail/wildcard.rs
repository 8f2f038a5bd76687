use emq::job;

#[job]
async fn send(_: String) {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
