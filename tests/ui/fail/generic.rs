use emq::job;

#[job]
async fn send<T>(to: String, body: T) {
    let _ = (to, body);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
