use emq::job;

#[derive(serde::Serialize)]
struct Address(String);

#[job]
async fn send(to: Address) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
