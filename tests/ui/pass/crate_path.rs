//! `crate = path` for those who get emq through another crate.
#![deny(warnings)]

use producer::wrapped;

mod emq {}

#[wrapped::emq::job(crate = wrapped::emq, name = "mail.send", backoff = fixed("5s"), unique = to, was = ["send"])]
async fn send(to: String, ctx: wrapped::emq::JobContext) -> Result<(), wrapped::emq::JobError> {
    let _ = (to, ctx);
    Ok(())
}

#[derive(serde::Serialize, serde::Deserialize, wrapped::emq::Job)]
#[job(crate = ::producer::wrapped::emq, unique = to, queue = "mail")]
struct Letter {
    to: String,
}

#[wrapped::emq::job(crate = wrapped::emq)]
async fn post(#[payload] letter: Letter) {
    let _ = letter.to;
}

fn register<J: wrapped::emq::Handler<()>>() {}

fn main() {
    register::<SendJob>();
    register::<PostJob>();
}
