use emq::job;

#[job(unique = student, on_conflict("replace"))]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
