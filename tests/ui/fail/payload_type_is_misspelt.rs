use emq::job;

#[job]
async fn send(to: Adress) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
