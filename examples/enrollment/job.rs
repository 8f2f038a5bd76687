//! The job: what the portal enqueues, and what a worker does with it.

use std::time::Duration;

use emq::{JobContext, JobError, State, job};
use tokio::time::sleep;

use crate::school::School;

/// How long the registrar looks at an application, and how long the letter to the student takes. Both are there so that
/// a kill can come before the effect, and between the effect and its completion.
const PAPERWORK: Duration = Duration::from_millis(75);

/// Enrols a student in a course.
///
/// A job runs at least once: it may run again when its worker is killed. The id is the same each time, so the school
/// keeps it with the enrolment, and the second run finds that there is nothing left to do.
#[job(
    queue = "enrollments",
    unique = (student, course),
    retention = "5m",
    derive(Clone, Debug, PartialEq, Eq, Hash),
)]
pub(crate) async fn enroll(
    student: String,
    course: String,
    State(school): State<School>,
    ctx: JobContext,
) -> Result<(), JobError> {
    school.note_delivery(ctx.id(), ctx.fence()).await?;
    sleep(PAPERWORK).await;
    school.enroll(ctx.id(), ctx.fence(), student, course).await?;
    sleep(PAPERWORK).await;
    Ok(())
}
