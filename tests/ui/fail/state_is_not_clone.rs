use emq::{State, job};

struct Mailer;

#[job]
async fn send(to: String, State(mailer): State<Mailer>) {
    let _ = (to, mailer);
}

fn build(client: &emq::Client) {
    emq::Worker::builder(client).state(Mailer).register::<SendJob>();
}

fn main() {}
