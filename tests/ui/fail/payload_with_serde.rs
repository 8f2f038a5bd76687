use emq::job;
use producer::SendEmail;

#[job]
async fn send(#[payload] #[serde(default)] mail: SendEmail) {
    let _ = mail;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
