use emq::job;

#[job(unique = student, on_conflict = (replace, debounce("1m")))]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
