use emq::{JobContext, job};

#[job]
async fn send(to: String, ctx: JobContext, again: JobContext) {
    let _ = (to, ctx, again);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
