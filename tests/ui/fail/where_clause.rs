use emq::job;

#[job]
async fn send(to: String)
where
    String: Clone,
{
    let _ = to;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
