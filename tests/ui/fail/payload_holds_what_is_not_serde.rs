use emq::job;

struct Address;

#[job]
async fn send(to: Vec<Address>) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
