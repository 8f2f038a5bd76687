use emq::job;
use producer::SendEmail;

#[job]
async fn send(#[payload] mail: SendEmail, copies: u8) {
    let _ = (mail, copies);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
