use emq::job;

#[job(every = "10m", missed = backfill(501))]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
