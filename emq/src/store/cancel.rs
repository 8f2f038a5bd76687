use std::time::Duration;

use super::{
    Lease, Settled, Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Invocation, Script, millis, number, script},
};
use crate::job::JobId;

pub(super) static SCRIPT: Script<8, 3> =
    script!("cancel", uses "clock", "guard", "marks", "waiting", "lanes", "unique", "events", "ending", "fence");

/// What became of a cancellation.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue, id: emq::JobId) -> Result<(), emq::CallError> {
/// use emq::Cancelled;
///
/// match queue.cancel(id).await? {
///     Cancelled::AtOnce => println!("it will never run"),
///     Cancelled::Asked => println!("its worker has been told to drop it"),
///     Cancelled::Gone => println!("it had ended before"),
///     _ => {}
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancelled {
    /// The job is gone: nobody held it, or it had been cancelled before.
    AtOnce,
    /// A worker holds the job and was told to drop it. The job ends as cancelled, unless the run is done before it can be
    /// dropped; it won't run again in any case.
    Asked,
    /// There is no such job, or it has ended; nothing was written.
    Gone,
}

impl Store {
    /// Ends a job as cancelled, or asks its holder to. Its id stays taken for `retention`.
    pub(crate) async fn cancel(&self, id: JobId, retention: Duration) -> Result<Cancelled, CallError> {
        let call = self.cancellation(id, retention, None);
        let value = self.connection.call(call).await?.value;
        match word("cancel", &value)?.as_str() {
            "OK" | "CANCELLED" => Ok(Cancelled::AtOnce),
            "ASKED" => Ok(Cancelled::Asked),
            "GONE" => Ok(Cancelled::Gone),
            _ => Err(unexpected("cancel", &value)),
        }
    }

    /// Ends a job as cancelled whose run was dropped for that.
    pub(crate) async fn cancel_held(&self, lease: &Lease, retention: Duration) -> Result<Settled, CallError> {
        let call = self.cancellation(lease.id(), retention, Some(lease.token()));
        Settled::read("cancel", &self.connection.call(call).await?.value)
    }

    fn cancellation(&self, id: JobId, retention: Duration, token: Option<u64>) -> Invocation {
        let keys = &self.keys;
        SCRIPT.with(
            [
                keys.row(id),
                keys.active.clone(),
                keys.pending.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.marker.clone(),
                keys.control.clone(),
                keys.root.clone(),
            ],
            [id.as_str().to_owned().into(), millis(retention), token.map_or_else(|| "".into(), number)],
        )
    }
}
