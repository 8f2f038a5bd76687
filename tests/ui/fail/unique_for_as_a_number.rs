use emq::job;

#[job(unique = student, unique_for = 600)]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
