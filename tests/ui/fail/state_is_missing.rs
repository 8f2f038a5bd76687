use emq::{State, job};

#[derive(Clone)]
struct Mailer;

#[derive(Clone)]
struct App;

#[job]
async fn send(to: String, State(mailer): State<Mailer>) {
    let _ = (to, mailer);
}

fn build(client: &emq::Client) {
    emq::Worker::builder(client).state(App).register::<SendJob>();
}

fn main() {}
