use emq::job;

#[job]
async fn grüße(to: String) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<GrüßeJob>();
}
