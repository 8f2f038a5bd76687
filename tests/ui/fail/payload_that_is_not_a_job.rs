use emq::job;

struct Letter;

#[job]
async fn send(#[payload] letter: Letter) {
    let _ = letter;
}

fn main() {}
