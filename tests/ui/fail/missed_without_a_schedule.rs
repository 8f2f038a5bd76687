use emq::job;

#[job(missed = once)]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
