use emq::job;

#[job]
async fn send(to: String) {
    let shared = std::rc::Rc::new(to);
    std::future::ready(()).await;
    let _ = shared;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
