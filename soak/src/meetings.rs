//! What a producer knows of the deduplication keys that nobody else uses: when its jobs with them came, so that it can tell
//! whether the next one was rightly let in, or kept out.

use std::collections::HashMap;

use emq::{JobId, JobState, Queue};

use crate::{
    keys::{Key, Mode, WINDOW},
    ledger::{now, unix_ms},
};

/// How long after its time a key may still be held: what the server and this process take for a ms.
const SLACK: i64 = 50;

/// The last job that was let in with a key.
#[derive(Clone, Copy, Debug)]
struct Last {
    id: JobId,
    /// When it was there for sure, in ms.
    answered: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Meetings {
    last: HashMap<String, Last>,
}

impl Meetings {
    /// A job was let in. Answers what is wrong with that.
    ///
    /// `is_kept` is whether nobody is going to take it away, which would set its key free.
    pub(crate) async fn let_in(&mut self, key: &Key, id: JobId, is_kept: bool, queue: &Queue) -> Option<String> {
        let answered = now();
        let last = self.last.remove(&key.name);
        if is_kept {
            self.last.insert(key.name.clone(), Last { id, answered });
        }
        let Last { id: before, .. } = last?;
        let name = &key.name;
        match key.mode {
            Mode::Window => {
                let over = unix_ms(before.minted_at()) + window();
                (answered < over).then(|| format!("{id} was let in, and the window of {before} with {name} is open"))
            }
            Mode::Start => {
                // It is asked for after the next one was let in. Whoever has started by then has a token.
                let stored = queue.get(before).await.ok()??;
                let waits = stored.attempts == 0 && matches!(stored.state, JobState::Pending | JobState::Scheduled);
                waits.then(|| format!("{id} was let in, and {before} with {name} hasn't started"))
            }
            _ => None,
        }
    }

    /// A job that was sent at this time was kept out. Answers what is wrong with that.
    pub(crate) fn kept_out(&self, key: &Key, sent: i64, holder: JobId) -> Option<String> {
        let last = self.last.get(&key.name).filter(|_| matches!(key.mode, Mode::Window | Mode::Start))?;
        if holder != last.id {
            return Some(format!("{holder} is said to hold {}, and {} came after it", key.name, last.id));
        }
        let is_over = key.mode == Mode::Window && sent > last.answered + window() + SLACK;
        is_over.then(|| format!("the window of {} is over, and {holder} keeps others out", key.name))
    }
}

fn window() -> i64 {
    i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX)
}
