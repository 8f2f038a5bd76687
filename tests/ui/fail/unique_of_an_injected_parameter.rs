use emq::{State, job};

#[job(unique = (to, mailer))]
async fn send(to: String, State(mailer): State<()>) {
    let _ = (to, mailer);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
