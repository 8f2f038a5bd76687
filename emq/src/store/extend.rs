use std::time::Duration;

use fred::types::Value;

use super::{
    Lease, Store,
    error::CallError,
    reply::{Reply, unexpected, unlike},
    script::{Script, millis, number, script},
};

pub(super) static SCRIPT: Script<2, 0> = script!("extend", uses "clock");

/// What became of one lease.
///
/// # Examples
///
/// ```
/// # async fn example(queue: emq::Queue, job: emq::Claimed) -> Result<(), emq::CallError> {
/// use std::time::Duration;
/// use emq::Extended;
///
/// if queue.extend(&[job.lease], Duration::from_secs(30)).await? == [Extended::Lost] {
///     // Somebody else has the job, or will have it: stop working on it.
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extended {
    /// The lease lasts for another term from now.
    Renewed,
    /// The job isn't held under this token any more; nothing was written for it.
    Lost,
    /// Somebody has cancelled the job: it is to be dropped, and settled with
    /// [`Queue::cancel_held`](crate::Queue::cancel_held). The lease wasn't renewed; when it runs out, the job ends as
    /// cancelled by itself.
    Cancelled,
}

/// One lease to renew, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extend {
    pub(crate) lease: Lease,
    pub(crate) term: Duration,
}

impl Store {
    /// Renews up to [`MAX_BATCH`](super::MAX_BATCH) leases in one call; one answer per lease, in order.
    pub(crate) async fn extend(&self, leases: &[Extend]) -> Result<Vec<Extended>, CallError> {
        let mut more = Vec::with_capacity(leases.len() * 3);
        for Extend { lease, term } in leases {
            more.extend([lease.id().as_str().to_owned().into(), number(lease.token()), millis(*term)]);
        }
        let call = SCRIPT.with_more([self.keys.rows.clone(), self.keys.active.clone()], [], more);
        Extended::read(self.connection.call(call).await?.value, leases.len())
    }
}

impl Extended {
    /// Reads the answer to `extend` for as many leases as were sent.
    pub(super) fn read(value: Value, leases: usize) -> Result<Vec<Self>, CallError> {
        let mut reply = Reply::list("extend", value)?;
        if reply.len() != leases {
            return Err(unlike(reply.call(), &format!("{} answers for {leases} leases", reply.len())));
        }
        let mut read = || match reply.text()?.as_str() {
            "OK" => Ok(Self::Renewed),
            "LOST" => Ok(Self::Lost),
            "CANCEL" => Ok(Self::Cancelled),
            other => Err(unexpected("extend", &other.to_owned().into())),
        };
        (0..leases).map(|_| read()).collect()
    }
}
