use emq::job;

#[job]
async fn send(to: String) -> Result<(), String> {
    Err(to)
}

fn main() {}
