use emq::job;

#[job(cron = "0 9 * * *", every = "10m")]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
