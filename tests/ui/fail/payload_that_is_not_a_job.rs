use emq::job;

struct Letter;

#[job]
async fn send(#[payload] letter: Letter) {
    let _ = letter;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
