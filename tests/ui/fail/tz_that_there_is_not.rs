use emq::job;

#[job(cron = "0 9 * * *", tz = "Europe/Bonn")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
