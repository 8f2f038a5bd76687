//! Seen from the handlers: how long a run surely had its slot of a limited lane or queue.
//!
//! A run can't know when its slot came free: its lease may have run out, and its job may be another's. But the server takes
//! a progress only from who holds the job. So a run that is answered twice has held its slot from after the first answer to
//! before the second question. What is noted in between is in the order of the ledger, whichever process writes it.

use emq::JobContext;

use crate::{
    event::What,
    jobs::SCRAP,
    lanes,
    ledger::{Ledger, LedgerError},
};

/// A stay in a limited lane or queue, if the run has one.
#[derive(Debug)]
pub(crate) struct Stay {
    is_confirmed: bool,
}

impl Stay {
    pub(crate) async fn begin(ctx: &JobContext, ledger: &Ledger) -> Result<Self, LedgerError> {
        let is_limited = ctx.queue() == SCRAP || ctx.group().is_some_and(|lane| lanes::limit(lane).is_some());
        let is_confirmed = is_limited && ctx.progress(&ctx.fence()).await.is_ok();
        if is_confirmed {
            ledger.note(ctx.id(), ctx.fence(), What::Enter).await?;
        }
        Ok(Self { is_confirmed })
    }

    pub(crate) async fn end(self, ctx: &JobContext, ledger: &Ledger) -> Result<(), LedgerError> {
        if self.is_confirmed {
            let (id, fence) = (ctx.id(), ctx.fence());
            ledger.note(id, fence, What::Leave).await?;
            if ctx.progress(&fence).await.is_ok() {
                ledger.note(id, fence, What::Left).await?;
            }
        }
        Ok(())
    }
}
