//! A crate that enqueues jobs and knows nothing of their handlers.

use emq::Job;
use serde::{Deserialize, Serialize};

/// Sends one email.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Job)]
#[job(queue = "mail", max_attempts = 3, unique = to, was = ["mail.send"])]
pub struct SendEmail {
    /// Who gets it.
    pub to: String,
    /// What it says.
    #[serde(default)]
    pub body: String,
}

/// The whole of emq under another path, as a crate that wraps it would offer it.
pub mod wrapped {
    pub use emq;
}
