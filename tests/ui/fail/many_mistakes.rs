use emq::{JobContext, job};

#[job(retries = 3, timeout = "soon", max_attempts = 0, name = "a b", backoff = fixed("5s", jitter = 2))]
pub fn send(
    to: &str,
    (subject, body): (String, String),
    _: u8,
    #[serde(default)] ctx: JobContext,
    again: JobContext,
) -> Result<(), emq::JobError> {
    let _ = (to, subject, body, ctx, again);
    Ok(())
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
    let _ = SendJob { to: "ada@example.org" };
}
