use emq::job;

#[job]
async fn send((to, body): (String, String)) {
    let _ = (to, body);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
