use emq::job;

#[job(every = "10m", missed = twice)]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
