use emq::job;

#[job(every = 600)]
async fn report() {}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
