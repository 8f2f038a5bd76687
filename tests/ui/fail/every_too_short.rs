use emq::job;

#[job(every = "5ms")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
