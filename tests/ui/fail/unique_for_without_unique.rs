use emq::job;

#[job(unique_for = "10m")]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
