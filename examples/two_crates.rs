//! A job whose producer doesn't know its handler: the struct stands in a crate that both use, the function in the worker's.
//!
//! ```text
//! cargo run -p emq-examples --example two_crates
//! ```
//!
//! It needs a server: the one in `EMQ_URL`, or else one on this machine. It ends when its job has.

use std::{env, error::Error, sync::Arc};

use emq::{Client, JobContext, State, Worker, job};
use tokio::sync::Notify;

/// Stands for the crate that both depend on. It needs no feature of emq but `macros`.
mod api {
    use emq::Job;
    use serde::{Deserialize, Serialize};

    /// An email to be sent. Its options are here, since they hold for every producer.
    #[derive(Debug, Serialize, Deserialize, Job)]
    #[job(queue = "mail", max_attempts = 5, backoff = exponential("1s", max = "10m"), unique = (to, subject))]
    pub(crate) struct SendEmail {
        pub(crate) to: String,
        pub(crate) subject: String,
        // Added later: emails that were waiting by then have none.
        #[serde(default)]
        pub(crate) language: Option<String>,
    }
}

/// Stands for the worker's crate.
mod worker {
    use super::*;

    /// Sends an email. The worker registers `SendEmailJob`, which is `SendEmail` on the wire: Rust lets a crate implement a
    /// handler only for a struct of its own.
    #[job]
    pub(crate) async fn send_email(#[payload] email: api::SendEmail, State(sent): State<Arc<Notify>>, ctx: JobContext) {
        let api::SendEmail { to, subject, language } = email;
        println!("to {to} in {}: {subject} ({})", language.as_deref().unwrap_or("any language"), ctx.id());
        sent.notify_one();
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("EMQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let client = Client::connect(url).await?;

    let email =
        |subject: &str| api::SendEmail { to: "ada@example.org".into(), subject: subject.into(), language: None };
    let first = client.enqueue(email("Welcome")).await?;
    let again = client.enqueue(email("Welcome")).await?;
    println!("the second is a duplicate of the first: {}", again.is_duplicate() && again.id() == first.id());

    let sent = Arc::new(Notify::new());
    let worker = Worker::builder(&client).state(Arc::clone(&sent)).register::<worker::SendEmailJob>().build()?;
    worker.run_until(sent.notified()).await?;
    client.close().await;
    Ok(())
}
