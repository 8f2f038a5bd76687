use emq::job;

#[job]
async fn send(to: String) -> Result<(), String> {
    Err(to)
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
