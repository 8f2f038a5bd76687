use emq::job;

#[job(every = "10m")]
async fn report(student: u32) {
    let _ = student;
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<ReportJob>();
}
