use emq::{JobContext, job};

#[job]
async fn send(to: String, #[serde(default)] ctx: JobContext) {
    let _ = (to, ctx);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
