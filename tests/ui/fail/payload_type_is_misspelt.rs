use emq::job;

#[job]
async fn send(to: Adress) {
    let _ = to;
}

fn main() {}
