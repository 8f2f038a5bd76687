use emq::job;

struct State<T>(T);

#[job]
async fn send(to: String, State(mailer): State<u8>) {
    let _ = (to, mailer);
}

fn main() {}
