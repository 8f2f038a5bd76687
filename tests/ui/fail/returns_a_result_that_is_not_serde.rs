use emq::job;

struct Receipt;

#[job]
async fn send(to: String) -> Result<Receipt, emq::JobError> {
    let _ = to;
    Ok(Receipt)
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
}
