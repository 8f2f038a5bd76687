use emq::job;

#[job(queue = "mail",, max_attempts = 3)]
async fn send(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
