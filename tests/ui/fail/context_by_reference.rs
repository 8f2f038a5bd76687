use emq::{JobContext, job};

#[job]
async fn send(to: String, ctx: &JobContext) {
    let _ = (to, ctx);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
