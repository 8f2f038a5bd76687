//! What a job may return.
#![deny(warnings)]

use emq::{JobError, job};

#[job]
async fn nothing() {}

#[job]
async fn unit() -> () {}

#[job]
async fn job_error() -> Result<(), JobError> {
    std::fs::read("/dev/null")?;
    Ok(())
}

#[job]
async fn own_error() -> Result<Vec<u8>, std::io::Error> {
    std::fs::read("/dev/null")
}

#[job]
async fn aliased() -> std::io::Result<Option<String>> {
    Ok(None)
}

#[job]
async fn opaque() -> Result<impl serde::Serialize + Send, JobError> {
    Ok(1)
}

#[job]
async fn borrowed() -> Result<&'static str, JobError> {
    Ok("done")
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<NothingJob>();
    register::<UnitJob>();
    register::<JobErrorJob>();
    register::<OwnErrorJob>();
    register::<AliasedJob>();
    register::<OpaqueJob>();
    register::<BorrowedJob>();
}
