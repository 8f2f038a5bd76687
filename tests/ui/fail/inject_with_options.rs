use emq::{JobContext, job};

#[job]
async fn send(to: String, #[inject(once)] ctx: JobContext) {
    let _ = (to, ctx);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
