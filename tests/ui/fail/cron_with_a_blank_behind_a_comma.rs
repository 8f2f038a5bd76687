use emq::job;

#[job(cron = "5 9, 17 * * *")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
