use emq::{State, job};

#[derive(Clone)]
struct Mailer;

#[derive(Clone)]
struct App;

#[job]
async fn send(to: String, State(mailer): State<Mailer>) {
    let _ = (to, mailer);
}

struct Builder<S>(S);

impl<S> Builder<S> {
    fn register<J: emq::Handler<S>>(self) -> Self {
        self
    }
}

fn main() {
    Builder(App).register::<SendJob>();
}
