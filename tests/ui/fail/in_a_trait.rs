use emq::job;

trait Mailer {
    #[job]
    async fn send(to: String);
}

fn main() {}
