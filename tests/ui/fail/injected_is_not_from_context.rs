use emq::job;

struct Tenant;

#[job]
async fn send(to: String, #[inject] tenant: Tenant) {
    let _ = (to, tenant);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
