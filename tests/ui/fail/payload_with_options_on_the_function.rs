use emq::job;
use producer::SendEmail;

#[job(queue = "mail")]
async fn send(#[payload] mail: SendEmail) {
    let _ = mail;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
