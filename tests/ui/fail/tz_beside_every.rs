use emq::job;

#[job(every = "10m", tz = "Europe/Berlin")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
