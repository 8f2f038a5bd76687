use emq::job;

#[job(every = "10m", overlap = "skip")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
