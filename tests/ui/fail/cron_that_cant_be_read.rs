use emq::job;

#[job(cron = "61 * * * *")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
