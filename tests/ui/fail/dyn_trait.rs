use emq::job;

#[job]
async fn send(to: Box<dyn std::fmt::Display + Send>) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
