use emq::job;

#[job]
async fn send(to: String, #[cfg(unix)] body: String) {
    let _ = (to, body);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
