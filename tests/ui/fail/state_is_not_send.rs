use emq::{State, job};

#[job]
async fn send(to: String, State(mailer): State<std::rc::Rc<u8>>) {
    std::future::ready(()).await;
    let _ = (to, mailer);
}

fn main() {}
