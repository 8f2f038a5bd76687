use emq::job;

#[job(unique = student, unique_until = start, unique_after = "10m")]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
