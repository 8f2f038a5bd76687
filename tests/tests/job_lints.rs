//! A job trips none of clippy's lints in its user's crate, the pedantic ones included. Running clippy is the test.
#![deny(warnings, clippy::all, clippy::pedantic, clippy::nursery, clippy::cargo)]
#![allow(clippy::multiple_crate_versions, clippy::cargo_common_metadata, reason = "about dependencies")]

use std::fmt::Debug;

use emq::{Job, JobContext, JobError, State, job};
use producer::SendEmail;
use serde::{Deserialize, Serialize};

/// Where students and courses are.
#[derive(Clone, Debug)]
pub struct Db;

/// Enrols a student in a course.
///
/// # Errors
///
/// If there is no such student.
#[job(
    queue = "enrollments",
    max_attempts = 5,
    timeout = "30s",
    backoff = exponential("1s", max = "10m", jitter = 0.25),
    unique = (student, course),
    was = ["enrol"],
    derive(Clone, Debug),
)]
pub async fn enroll(
    student: String,
    course: Vec<u8>,
    #[serde(default)] note: Option<String>,
    State(db): State<Db>,
    ctx: JobContext,
) -> Result<usize, JobError> {
    tokio::task::yield_now().await;
    show(&(&student, &db, ctx.id()));
    Ok(student.len() + course.len() + note.map_or(0, |note| note.len()))
}

/// Does nothing, and so awaits nothing.
#[job]
pub async fn ping() {}

/// Takes values that it only looks at.
#[job]
async fn look(name: String, times: u64) {
    for _ in 0..times {
        show(&name);
    }
}

/// A letter.
#[derive(Clone, Debug, Serialize, Deserialize, Job)]
#[job(queue = "mail", unique = to)]
pub struct Letter {
    to: String,
}

#[job]
async fn post(#[payload] letter: Letter) {
    show(&letter);
}

#[job]
async fn send(#[payload] SendEmail { to, .. }: SendEmail, State(db): State<Db>) -> Result<(), JobError> {
    show(&(to, db));
    Ok(())
}

fn show(value: &impl Debug) {
    assert!(!format!("{value:?}").is_empty());
}

const fn names<S, J: emq::Handler<S>>() -> &'static str {
    J::NAME
}

#[test]
fn jobs_are_used() {
    assert_eq!(names::<Db, EnrollJob>(), "enroll");
    assert_eq!(names::<(), PingJob>(), "ping");
    assert_eq!(names::<(), LookJob>(), "look");
    assert_eq!(names::<(), PostJob>(), "letter");
    assert_eq!(names::<Db, SendJob>(), "send_email");
}
