//! What the beat of a worker asks for in one call.

use std::time::Duration;

use support::Reply;

use super::{Played, failed, none_dropped, script::Script};
use crate::answer::Answer;
use crate::bench::Stage;
use crate::verb::Slot;

impl Stage<'_> {
    pub(super) async fn beat(&mut self, max_stalled: Option<u32>) -> Result<Played, String> {
        let max_stalled = max_stalled.map(|max| max.to_string()).unwrap_or_default();
        let reply = self.call(&Script::read("beat"), "", vec![max_stalled, "500".to_owned()]).await;
        let Reply::Array(items) = reply else { return Err(failed(reply)) };
        let [reaped, promoted, slot, kinds] = &items[..] else { return Err(format!("a strange answer: {items:?}")) };
        let [_more, dropped, recovered, dead, cancelled] = reaped.items() else { return Err(failed(reaped)) };
        none_dropped(dropped.int().unsigned_abs())?;
        let [count, next_due, dropped] = promoted.items() else { return Err(failed(promoted)) };
        none_dropped(dropped.int().unsigned_abs())?;
        let answer = Answer::Beat {
            reaped: Box::new(Answer::Reaped {
                recovered: self.listed(recovered)?,
                dead: self.listed(dead)?,
                cancelled: self.listed(cancelled)?,
            }),
            promoted: Box::new(Answer::Promoted(count.int().unsigned_abs())),
            slot: (slot.int() >= 0).then(|| slot.int() == 0),
            kinds: kinds.int() as usize,
        };
        Ok((answer, Some(u64::try_from(next_due.int()).ok().map(Duration::from_millis))))
    }

    fn listed(&self, ids: &Reply) -> Result<Vec<Slot>, String> {
        let ids = ids.items().iter().map(|id| id.text().parse().map_err(failed));
        self.slots(ids.collect::<Result<_, _>>()?)
    }
}
