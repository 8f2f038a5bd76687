use emq::job;
use producer::SendEmail;

#[job]
async fn send(to: String, #[payload] #[inject] mail: SendEmail) {
    let _ = (to, mail);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
