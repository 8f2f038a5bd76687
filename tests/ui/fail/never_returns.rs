use emq::job;

#[job]
async fn send(to: String) -> ! {
    let _ = to;
    std::future::pending().await
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
