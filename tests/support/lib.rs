//! What the tests of emq share: private servers, a client of their own, dumps of
//! every key, a proxy that breaks connections, and child processes to kill.
//!
//! Nothing in here uses emq, so that a test looks at the server independently of
//! the code it tests. Every process started through this crate ends with the test
//! process, whichever way that one ends.

mod guard;
mod port;
mod resp;

pub mod clock;
pub mod dump;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod server;

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

pub use clock::Clock;
pub use dump::Dump;
pub use process::{Child, child, event, in_role};
pub use proxy::Proxy;
pub use raw::Raw;
pub use resp::{Malformed, Reply};
pub use server::Server;

/// Returns the server that all tests of this binary share, started on first use.
///
/// Take a name of its own for each queue from [`queue_name`]. A test that kills,
/// freezes, flushes or configures its server starts its own with [`Server::start`].
///
/// # Panics
///
/// If the server can't be started.
pub async fn server() -> &'static Server {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    SHARED.get_or_init(Server::start).await
}

/// Returns a queue name that no other test, nor a second call, gets.
///
/// ```
/// assert_ne!(support::queue_name("mail"), support::queue_name("mail"));
/// ```
pub fn queue_name(label: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{label}-{}-{next}", std::process::id())
}
