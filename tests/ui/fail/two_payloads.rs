use emq::job;
use producer::SendEmail;

#[job]
async fn send(#[payload] mail: SendEmail, #[payload] copy: SendEmail) {
    let _ = (mail, copy);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
