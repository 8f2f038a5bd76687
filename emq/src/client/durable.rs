//! An enqueue that answers when the job is elsewhere, too.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Client, EnqueueError, Ticket};
use crate::{
    clock::later,
    store::{Admit, Admitted, CallError, Durability, Item, Reached, Store},
};

/// The pause after a wait that was broken off.
const PAUSE: Duration = Duration::from_millis(100);

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) durability: Durability,
    pub(super) within: Duration,
}

/// How an admission falls short of what was asked for.
#[derive(Clone, Debug)]
pub(super) struct Shortfall {
    wanted: Durability,
    replicas: u32,
    source: Option<CallError>,
}

impl Shortfall {
    /// Nothing is known beside the admission.
    fn unknown(wanted: Wanted, source: Option<CallError>) -> Self {
        Self { wanted: wanted.durability, replicas: 0, source }
    }

    /// The error for one of the jobs.
    pub(super) fn of(&self, ticket: Ticket) -> EnqueueError {
        let Self { wanted, replicas, source } = self.clone();
        EnqueueError::NotDurable { ticket, wanted, replicas, source }
    }
}

impl Client {
    /// Admits jobs, and waits until they are as durable as is wanted.
    pub(super) async fn admit(
        &self,
        store: &Store,
        wanted: Option<Wanted>,
        nonce: Option<&str>,
        items: &[Item],
    ) -> Result<(Admitted, Option<Shortfall>), CallError> {
        let Some(wanted) = wanted else { return Ok((store.enqueue(nonce, items).await?, None)) };
        let deadline = later(Instant::now(), self.settings().retry_for);
        let confirmed = self.inner.confirmers.with(self.settings(), store.name(), wanted.within, async |store| {
            admit_durably(&store, wanted, nonce, items, deadline).await
        });
        match confirmed.await {
            Ok(Some(confirmed)) => confirmed,
            // The job comes first: that nobody can vouch for it must not keep it out.
            Ok(None) => Ok((store.enqueue(nonce, items).await?, Some(Shortfall::unknown(wanted, None)))),
            Err(error) => Ok((store.enqueue(nonce, items).await?, Some(Shortfall::unknown(wanted, Some(error))))),
        }
    }
}

/// Admits and waits, and both again if the connection changed in between: it may be to another server then, which never
/// heard of the jobs.
async fn admit_durably(
    store: &Store,
    wanted: Wanted,
    nonce: Option<&str>,
    items: &[Item],
    deadline: Instant,
) -> Result<(Admitted, Option<Shortfall>), CallError> {
    let mut before: Option<Admitted> = None;
    loop {
        let error = match store.enqueue_durably(nonce, items, wanted.durability, wanted.within).await {
            Ok((admitted, reached)) => {
                let admitted = match before {
                    Some(before) => since(before, admitted, items),
                    None => admitted,
                };
                match reached {
                    Ok(Reached { is_enough: true, .. }) => return Ok((admitted, None)),
                    Ok(Reached { replicas, .. }) => {
                        return Ok((admitted, Some(Shortfall { replicas, ..Shortfall::unknown(wanted, None) })));
                    }
                    Err(error) => {
                        before = Some(admitted);
                        error
                    }
                }
            }
            Err(error) => error,
        };
        if !error.is_transient() || Instant::now() >= deadline {
            return match before {
                Some(admitted) => Ok((admitted, Some(Shortfall::unknown(wanted, Some(error))))),
                None => Err(error),
            };
        }
        tracing::debug!(%error, "enqueuing again, since the wait for replicas was broken off");
        sleep(PAUSE).await;
    }
}

/// What a later try says, of jobs that an earlier one has admitted: they find themselves.
fn since(before: Admitted, mut now: Admitted, items: &[Item]) -> Admitted {
    now.repeated = true;
    for ((was, is), item) in before.admits.into_iter().zip(&mut now.admits).zip(items) {
        let was_new = matches!(was, Admit::Enqueued | Admit::Parked { .. });
        if was_new && matches!(is, Admit::Duplicate { of, .. } if *of == item.id) {
            *is = was;
        }
    }
    now
}
