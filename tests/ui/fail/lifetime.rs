use emq::job;

#[job]
async fn send<'a>(to: std::borrow::Cow<'a, str>) {
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
