use emq::job;

#[job(unique = student, on_conflict = (debounce, then_once))]
async fn enroll(student: u32, course: String) {
    let _ = (student, course);
}

fn main() {}
